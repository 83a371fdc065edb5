"""Reading and writing policy directories: whole or not at all, the optimizer's state with the newest step only."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from rlvr_cli.errors import UsageError, UserError, first_line
from rlvr_cli.policy import CARD, OPTIMIZER, Policy, digest_files, read_card, weight_files

# What goes along with the weights: tokenizer, templates, code. Weights of any format do not, nor the model's config,
# which is saved with them: it says their dtype.
_COMPANIONS = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken", "*.py", "*.md")
_NOT_COMPANIONS = ("config.json", "*.index.json", "trainer_state.json", CARD)


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
        updates = int(content["updates"])
    except Exception as error:  # torch raises many kinds for a file that is torn or of another model
        raise UserError(
            f"{path}: cannot be read as this policy's optimizer state ({first_line(error)}); remove it"
        ) from error
    return optimizer, updates, True


@contextmanager
def new_directory(output: Path, source: Policy) -> Iterator[Path]:
    """A directory beside `output` to fill; it takes the name of `output` when the block ends well, else it goes.

    What a policy directory of that name held before is whole until then. Raises UserError before anything is written
    if the place cannot be used.
    """
    output = output.resolve()  # through a symbolic link: what it points to is replaced
    check_place(output, source)
    partial = output.with_name(f".{output.name}.partial")
    previous = output.with_name(f".{output.name}.previous")
    try:
        lock = _locked(partial, output)
        try:
            if previous.exists() and not output.exists():  # killed between the two renames of _swap
                previous.rename(output)
            shutil.rmtree(previous, ignore_errors=True)
            _empty(partial)
            try:
                yield partial
                _swap(partial, output, previous)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
        finally:
            os.close(lock)
    except OSError as error:
        raise UserError(
            f"{output}: cannot be written: {error.strerror or error}; free the place or choose another --output"
        ) from error


def _locked(partial: Path, output: Path) -> int:
    """Make the directory `partial` and lock it; a descriptor that holds the lock."""
    while True:
        partial.mkdir(parents=True, exist_ok=True)
        lock = os.open(partial, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise UserError(f"{output}: another run is writing it; wait for it or choose another --output") from error
        with suppress(FileNotFoundError):
            if partial.stat().st_ino == os.fstat(lock).st_ino:
                return lock
        os.close(lock)  # another run finished in between and took the directory with it


def _swap(partial: Path, output: Path, previous: Path) -> None:
    """Give `partial` the name `output`; what had it goes, or comes back if that fails."""
    replaces = output.exists()
    if replaces:
        output.rename(previous)
    try:
        partial.rename(output)
    except OSError:
        if replaces:
            previous.rename(output)
        raise
    shutil.rmtree(previous, ignore_errors=True)


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

    _save_weights(model, directory)
    for path in source.path.iterdir():
        if path.is_file() and _matches(path, _COMPANIONS) and not _matches(path, _NOT_COMPANIONS):
            shutil.copyfile(path, directory / path.name)
    torch.save({"state": optimizer.state_dict(), "updates": updates}, directory / OPTIMIZER)
    policy_id = digest_files(weight_files(directory))
    files = sorted(path.name for path in directory.iterdir())
    content = {"policy_id": policy_id, "policy_step": source.step + 1, "files": files, **card}
    for path in directory.iterdir():
        _sync(path)
    (directory / CARD).write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    _sync(directory / CARD)
    return policy_id


def _save_weights(model: Any, directory: Path) -> None:
    """The weights, and no generation config: the source's own is copied, which a strict check might refuse to save."""
    from transformers import GenerationConfig

    model.generation_config = GenerationConfig()
    model.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    for path in weight_files(directory):
        path.chmod(0o644)


def _matches(path: Path, patterns: tuple[str, ...]) -> bool:
    return any(path.match(pattern) for pattern in patterns)


def drop_optimizer(policy: Policy) -> None:
    """Remove a policy's optimizer state: it has gone on to the next step."""
    (policy.path / OPTIMIZER).unlink(missing_ok=True)


def check_place(output: Path, source: Policy) -> None:
    """Raise an error if `output` is the policy that is trained, or something that is no policy of train-step."""
    if output.exists() and output.resolve() == source.path.resolve():
        raise UsageError(f"--output {output} is the policy that is trained; give the next one a directory of its own")
    if source.path.resolve().is_relative_to(output.resolve()):
        raise UsageError(
            f"--output {output} holds the policy that is trained; give the next one a directory of its own"
        )
    if output.is_dir() and (output / CARD).is_file():
        foreign = {path.name for path in output.iterdir()} - {*read_card(output).get("files", ()), CARD, OPTIMIZER}
        if foreign:
            raise UserError(f"{output}: holds {min(foreign)}, which train-step has not written; move it away")
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
