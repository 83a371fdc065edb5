"""Shared fixtures: the embedded policy and its tokens, one thread."""

import os
import signal
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: two busy cores with two threads each are ten times slower

import pytest

from rlvr_cli import policy as policies
from rlvr_cli.policy import Policy

# A shell starts what it runs in the background with SIGINT ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def tiny() -> Policy:
    return policies.find("tiny")


@pytest.fixture(scope="session")
def tokens(tiny):
    from rlvr_cli.engines.tokens import Tokens

    return Tokens(tiny)


@pytest.fixture(scope="session")
def make_engine(tiny, tokens):
    from rlvr_cli.engines.transformers_engine import TransformersEngine

    def make(batch_size: int = 64, dtype: str = "float32", policy: Policy = tiny) -> TransformersEngine:
        return TransformersEngine(
            policy, batch_size=batch_size, dtype=dtype, device="cpu", end_ids=tokens.end_ids, decode=tokens.text
        )

    return make


@pytest.fixture
def problems_file(tmp_path: Path) -> Path:
    """A dozen embedded problems of different lengths."""
    import orjson

    from rlvr_cli.tiny.problems import generate

    path = tmp_path / "problems.jsonl"
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in list(generate("eval"))[::30]))
    return path
