"""What a verifier says of one completion: a verdict, a reward, what was judged, and anything worth saying.

The reward follows from the verdict. `correct` is 1 or the verifier's own score. `wrong`, `no_answer`, `truncated` and
`timeout` are the policy's doing and are 0. `error` is the judge's fault: it has no reward, so it enters no baseline.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Judgement:
    """One completion, judged. `detail` becomes `verifier_detail`, beside the verifier's name and version."""

    verdict: str
    reward: float | None
    extracted: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


def correct(extracted: str | None, score: float = 1.0, **detail: Any) -> Judgement:
    """The answer is right; `score` is the verifier's own, when it has one."""
    return Judgement("correct", score, extracted, detail)


def wrong(extracted: str | None, reason: str, **detail: Any) -> Judgement:
    """There is an answer and it is not the right one."""
    return Judgement("wrong", 0.0, extracted, {"reason": reason, **detail})


def no_answer(reason: str, **detail: Any) -> Judgement:
    """The completion ended without an answer."""
    return Judgement("no_answer", 0.0, None, {"reason": reason, **detail})


def truncated(reason: str, **detail: Any) -> Judgement:
    """The completion reached its token limit before an answer."""
    return Judgement("truncated", 0.0, None, {"reason": reason, **detail})


def timeout(extracted: str | None, seconds: float, **detail: Any) -> Judgement:
    """The answer was too heavy to judge in time: the policy wrote it, so it is no success."""
    return Judgement("timeout", 0.0, extracted, {"reason": f"not judged within {seconds:g} s", **detail})


def error(reason: str, extracted: str | None = None, **detail: Any) -> Judgement:
    """The judge failed. There is no reward."""
    return Judgement("error", None, extracted, {"reason": reason, **detail})
