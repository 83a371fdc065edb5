"""Where a policy lies, what it is called and which weights it has. Nothing here needs torch.

A policy is a directory in Hugging Face form: config, tokenizer, safetensors. Those that `rlvr train-step` writes also
hold `rlvr.json`, written last: the step, the ancestor, the settings and the records that made it.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from rlvr_cli.errors import UserError

TINY = Path(__file__).parent / "tiny" / "policy"
CARD = "rlvr.json"
OPTIMIZER = "rlvr-optimizer.pt"  # a name of our own: `optimizer.pt` is that of other trainers
_GIVE = "give `tiny` or a local directory in Hugging Face form"


@dataclass(frozen=True)
class Policy:
    """A policy on disk: `name` as given, `id` a digest of the weights, `step` how many train-steps made it.

    `vocabulary` is how many token ids it has, None where its config does not say.
    """

    name: str
    path: Path
    id: str
    step: int
    vocabulary: int | None


def locate(name: str) -> Path:
    """The directory behind `--model NAME`: `tiny` or a local one. Raises UserError if there is none."""
    path = TINY if name == "tiny" else Path(name)
    if not path.is_dir():
        raise UserError(f"model {name}: is no directory; {_GIVE}")
    return path


def find(name: str) -> Policy:
    """The policy behind `--model NAME`, with its weights. Raises UserError if there is none."""
    path = locate(name)
    if not (path / "config.json").is_file():
        raise UserError(f"model {name}: has no config.json; {_GIVE}")
    weights = weight_files(path)
    if not weights:
        raise UserError(f"model {name}: has no *.safetensors; save its weights as safetensors first")
    return Policy(name, path, digest_files(weights), read_card(path).get("policy_step", 0), _vocabulary(path))


def _vocabulary(path: Path) -> int | None:
    try:
        config = orjson.loads((path / "config.json").read_bytes())
        size = config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")
    except (ValueError, AttributeError) as error:
        raise UserError(f"{path / 'config.json'}: is no model configuration: {error}") from error
    return size if isinstance(size, int) else None


def weight_files(path: Path) -> list[Path]:
    """The files that hold the weights, in a fixed order."""
    return sorted(path.glob("*.safetensors"))


def digest_files(paths: list[Path]) -> str:
    """20 hex digits over the content of the files; names do not count."""
    digest = hashlib.blake2b(digest_size=10)
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def read_card(path: Path) -> dict[str, Any]:
    """The content of the policy's `rlvr.json`, empty for a policy from elsewhere."""
    card = path / CARD
    if not card.is_file():
        return {}
    try:
        content = orjson.loads(card.read_bytes())
        if not isinstance(content, dict) or not isinstance(content.get("policy_step"), int):
            raise ValueError("policy_step is missing")
    except ValueError as error:
        raise UserError(f"{card}: {error}; the policy was not written by rlvr train-step") from error
    return content
