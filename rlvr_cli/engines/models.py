"""Loading a causal language model from a policy's directory: the one place that knows transformers' loader."""

import os
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging

from rlvr_cli.errors import UserError, first_line
from rlvr_cli.policy import Policy

SMALL = 10_000_000  # parameters


def load_model(policy: Policy, dtype: str, device: str) -> Any:
    """The model in evaluation mode (no dropout) on `device`: `cpu`, `cuda`, or `auto` for the better one here."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        model, loading = AutoModelForCausalLM.from_pretrained(
            policy.path,
            dtype=getattr(torch, dtype),
            local_files_only=True,
            trust_remote_code=False,  # a policy is data: its directory decides on no code
            attn_implementation="sdpa",
            output_loading_info=True,
        )
        model = model.to(device).eval()
    except Exception as error:  # torn weights, an unknown architecture, a missing device: each raises its own kind
        raise UserError(f"model {policy.name}: cannot be loaded on {device}: {first_line(error)}") from error
    # transformers would fill them with random numbers, without a word
    if absent := sorted(loading["missing_keys"]):
        raise UserError(
            f"model {policy.name}: its weights lack {len(absent)} tensors (the first is {absent[0]}); copy it again"
        )
    # A small layer is done before a second thread has taken its half; on a busy machine the threads then wait for one
    # another by spinning, and a run of seconds takes minutes.
    if device == "cpu" and "OMP_NUM_THREADS" not in os.environ and model.num_parameters() < SMALL:
        torch.set_num_threads(1)
    return model


def end_token_ids(model: Any) -> set[int]:
    """The ids that end a completion, by the model's generation config."""
    ends = model.generation_config.eos_token_id
    return set(ends) if isinstance(ends, list) else {ends} - {None}


def context_length(model: Any) -> int:
    """The most tokens that prompt and completion may have together."""
    return int(getattr(model.config.get_text_config(), "max_position_embeddings", None) or 1 << 20)
