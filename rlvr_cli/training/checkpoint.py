"""Reading and writing policy directories: whole or not at all, the optimizer's state with the newest step only."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from rlvr_cli.errors import UsageError, UserError
from rlvr_cli.policy import CARD, OPTIMIZER, Policy, digest_files, weight_files

# What a model's own save writes anew; all else of a policy's directory (tokenizer, templates) is copied as it is.
_WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.bin.index.json", "*.gguf", CARD, OPTIMIZER)


def make_optimizer(model: Any, policy: Policy, weight_decay: float) -> tuple[Any, int, bool]:
    """AdamW with the state that the policy's directory holds, the updates made so far, and whether it held one."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.99), weight_decay=weight_decay)
    path = policy.path / OPTIMIZER
    if not path.is_file():
        return optimizer, 0, False
    try:
        content = torch.load(path, map_location=model.device, weights_only=True)
        state = content["state"]
        state["param_groups"][0]["weight_decay"] = weight_decay
        optimizer.load_state_dict(state)
    except Exception as error:  # torch raises many kinds for a file that is torn or of another model
        raise UserError(f"{path}: cannot be read as this policy's optimizer state ({error}); remove it") from error
    return optimizer, int(content["updates"]), True


@contextmanager
def new_directory(output: Path, source: Policy) -> Iterator[Path]:
    """A directory beside `output` to fill; it takes the name of `output` when the block ends well, else it goes.

    What a policy directory of that name held before is whole until then. Raises UserError before anything is written
    if the place cannot be used.
    """
    _check_place(output, source)
    partial = output.with_name(f".{output.name}.partial")
    previous = output.with_name(f".{output.name}.previous")
    try:
        if previous.exists() and not output.exists():  # killed between the two renames below
            previous.rename(output)
        shutil.rmtree(previous, ignore_errors=True)
        partial.mkdir(parents=True, exist_ok=True)
        lock = os.open(partial, os.O_RDONLY)
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}; choose another --output") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise UserError(f"{output}: another run is writing it; wait for it or choose another --output") from error
    try:
        _empty(partial)
        yield partial
        if output.exists():
            shutil.rmtree(previous, ignore_errors=True)
            output.rename(previous)
        partial.rename(output)
        shutil.rmtree(previous, ignore_errors=True)
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror or error}; nothing was changed") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        os.close(lock)


def write_policy(
    directory: Path,
    model: Any,
    optimizer: Any,
    updates: int,
    source: Policy,
    card: dict[str, Any],
) -> str:
    """Write weights, tokenizer, optimizer state and, last, `rlvr.json` into `directory`; the new policy's id."""
    import torch

    shutil.copytree(source.path, directory, ignore=shutil.ignore_patterns(*_WEIGHTS, ".*"), dirs_exist_ok=True)
    model.save_pretrained(directory)
    for path in weight_files(directory):
        path.chmod(0o644)
    torch.save({"state": optimizer.state_dict(), "updates": updates}, directory / OPTIMIZER)
    policy_id = digest_files(weight_files(directory))
    content = {"policy_id": policy_id, "policy_step": source.step + 1, "parent_policy_id": source.id, **card}
    for path in directory.iterdir():
        _sync(path)
    (directory / CARD).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    _sync(directory / CARD)
    return policy_id


def drop_optimizer(policy: Policy) -> None:
    """Remove a policy's optimizer state: it has gone on to the next step."""
    (policy.path / OPTIMIZER).unlink(missing_ok=True)


def _check_place(output: Path, source: Policy) -> None:
    if output.exists() and output.resolve() == source.path.resolve():
        raise UsageError(f"--output {output} is the policy that is trained; give the next one a directory of its own")
    if output.exists() and not (output / CARD).is_file() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(
            f"{output}: there already, and not a policy of rlvr train-step; remove it or choose another name"
        )


def _empty(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _sync(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as file:
            os.fsync(file.fileno())
