"""What a stage asks of an engine: token ids and a seed a sample in; token ids, logprobs and finish reason out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Tag = TypeVar("Tag")


@dataclass(frozen=True)
class Sampling:
    """The distribution to sample from. `top_k` 0, `top_p` 1 and `min_p` 0 leave the support whole."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    stop: tuple[str, ...] = ()

    @property
    def whole_support(self) -> bool:
        """Whether every token can be drawn, as a policy gradient needs."""
        return self.temperature > 0 and self.top_p >= 1 and self.top_k == 0 and self.min_p == 0


@dataclass(frozen=True)
class Request(Generic[Tag]):
    """One sample to draw. `tag` is the caller's own mark and comes back with the sample.

    The last `begun` tokens of `prompt` are a completion already begun: a stop text may begin in them.
    """

    prompt: tuple[int, ...]
    seed: int
    max_tokens: int
    tag: Tag
    begun: int = 0


@dataclass(frozen=True)
class Sample:
    """What was drawn. A sampled end token is the last id, with its logprob, when `finish_reason` is `stop`.

    `logprobs` are of the distribution sampled from (logits / temperature, renormalized over a cut support), rounded to
    float32. At temperature 0 nothing is drawn and they are those of temperature 1.
    """

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: str


class Engine(Protocol):
    """Anything that can sample.

    `context` is the longest prompt and completion together, in tokens; `end_ids` are the tokens that end a completion.
    """

    context: int
    end_ids: frozenset[int]

    def sample(self, requests: Iterable[Request[Tag]], sampling: Sampling) -> Iterator[tuple[Request[Tag], Sample]]:
        """Draw one sample a request, in any order; requests are taken as they are needed."""
        ...
