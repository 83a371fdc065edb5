"""What several stages ask of a record, each asked in one place. All raise RecordError naming file, line and remedy."""

from rlvr_cli.errors import RecordError
from rlvr_cli.policy import Policy
from rlvr_cli.records import Record


def check_judged(record: Record) -> None:
    """A scored rollout has a verdict, and a reward unless the judge itself failed."""
    if "verdict" not in record:
        raise RecordError(f"{record.where}: verdict is missing; run rlvr verify on it first")
    if "reward" not in record and record["verdict"] != "error":
        raise RecordError(f"{record.where}: reward is missing; run rlvr verify on it first")


def check_exact(record: Record) -> None:
    """The completion's ids are those that were sampled, each with its logprob."""
    if record.get("tokens_exact") is False:
        raise RecordError(f"{record.where}: tokens_exact is false; sample with an engine that returns token ids")
    ids, logprobs = len(record["completion_token_ids"]), len(record["logprobs"])
    if ids != logprobs:
        raise RecordError(f"{record.where}: {ids} completion_token_ids and {logprobs} logprobs; sample again")


def check_vocabulary(record: Record, policy: Policy) -> None:
    """The policy can read the ids, and there is a prompt to begin with."""
    prompt = record["prompt_token_ids"]
    if not prompt:
        raise RecordError(f"{record.where}: prompt_token_ids is empty: nothing to predict the first token from")
    largest = max(max(prompt), max(record["completion_token_ids"], default=0))
    if policy.vocabulary is not None and largest >= policy.vocabulary:
        raise RecordError(
            f"{record.where}: token id {largest} is beyond the vocabulary of {policy.name} ({policy.vocabulary}); "
            "sampled by another model?"
        )


def claim(places: dict[str, str], record: Record, column: str, name: str, remedy: str) -> None:
    """Note in `places` where `name`, the record's `column`, stands; it may stand nowhere else."""
    if name in places:
        raise RecordError(
            f"{record.where}: {column} {record.get(column, name)} stands at {places[name]} already; {remedy}"
        )
    places[name] = record.where
