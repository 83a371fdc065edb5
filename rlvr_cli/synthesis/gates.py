"""Gates: what a made problem has to pass before it is worth a rollout. Each refusal has a name, to be counted.

- `ill_posed`: the verifier does not accept the derivation that the problem was made with, or its answer.
- `too_long`: more words than allowed.
- `copy`: the same words as a known problem (case, white space and punctuation around words aside).
- `near_copy`: nearly the words of a known problem, and the same answer.
- `evaluation`: too large a share of the 8-grams of a problem of the evaluation set, or all the words of one that has
  fewer than 8, as a run.

Two measures need care in a language of few words, such as the embedded chains, where most problems share most words:

- A near copy needs the same answer. One number changed in a long text is another problem with another answer, and the
  Jaccard similarity of word shingles cannot tell it from another spelling of the same problem; the answer can. Of 800
  children each that the operators make of the embedded sets, similarity alone, at 0.8, would turn away 25 (trap), 7
  (learnable) and 703 (deep); with the same answer 0, 1 and 118. Nearly all of those lack steps that undo one
  another in the parent: they are problems of their own, and the operators make others in their place.
  The similarity is computed exactly, over an index, where MinHash would estimate it: the sets here are small.
- Overlap with the evaluation set is a share, not one 8-gram in common as is usual: 8 words are two or three steps of a
  chain and collide by chance. Of the 800 children of trap, all measured as too hard, 137 have one in common with
  tiny:eval, and none more than 0.444 of them: one would be too much for 137, half of them for none. Of learnable's
  children 134 have one in common and 3 half of them, of deep's 390 and none. The share is of the smaller of the two
  texts, so that a text of 8 words or more within the other counts whole.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rlvr_cli import verifiers
from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.synthesis.chains import chain_text, program

REASONS = ("ill_posed", "too_long", "copy", "near_copy", "evaluation")
SHINGLE = 3  # words
NGRAM = 8  # words
BEFORE = ";:?\"'`"  # not part of a word when they stand before it; a point may begin a number, such as .5
AFTER = BEFORE + ".,"  # the same at its end; `!` may be a factorial


def words(text: str) -> tuple[str, ...]:
    """The text as it is compared: compatible characters made one, no case, no punctuation around words."""
    parts = unicodedata.normalize("NFKC", text).casefold().split()
    return tuple(word for word in (part.rstrip(AFTER).lstrip(BEFORE) for part in parts) if word)


def grams(text: Sequence[str], size: int) -> frozenset[tuple[str, ...]]:
    """The runs of `size` words; of a shorter text, the text itself."""
    return frozenset(tuple(text[at : at + size]) for at in range(max(len(text) - size, 0) + 1))


def wording(record: Record) -> tuple[str, ...]:
    """The words of a problem: of its prompt, or of its turns without the system's; a chain's of the chain alone."""
    if "prompt" in record or program(record) is not None:
        return words(chain_text(record))
    return words(" ".join(turn["content"] for turn in record["messages"] if turn["role"] != "system"))


class Index:
    """Sets of grams, and which of them share how many with another set."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._holders: dict[tuple[str, ...], list[int]] = {}

    def add(self, found: frozenset[tuple[str, ...]]) -> None:
        """Take one more set in."""
        for gram in found:
            self._holders.setdefault(gram, []).append(len(self._sizes))
        self._sizes.append(len(found))

    def shared(self, found: frozenset[tuple[str, ...]]) -> Iterator[tuple[int, int]]:
        """(size, number of grams in common) of each set that has any in common."""
        common = Counter(holder for gram in found for holder in self._holders.get(gram, ()))
        return ((self._sizes[holder], count) for holder, count in common.items())


@dataclass
class Gates:
    """The gates with their settings, and the problems that they compare with: held in memory, some KB each.

    `near`, in (0, 1]: the Jaccard similarity of 3-word shingles from which two problems with one answer are copies.
    `overlap`, in [0, 1]: the share of 8-grams in common, of the smaller text, from which a problem is one of the
    evaluation set; at 0 a single 8-gram is enough. `max_words`: of a prompt.
    """

    near: float = 0.8
    overlap: float = 0.5
    max_words: int = 512
    _known: set[tuple[str, ...]] = field(default_factory=set)
    _near: dict[tuple[str, ...], Index] = field(default_factory=dict)  # by the words of the answer
    _evaluation: Index = field(default_factory=Index)
    _brief: dict[int, set[tuple[str, ...]]] = field(default_factory=dict)  # evaluation, below 8 words, by length

    def know(self, record: Record) -> None:
        """From now on a copy of this problem is turned away."""
        text = wording(record)
        if text in self._known:
            return
        self._known.add(text)
        self._near.setdefault(words(record.get("answer", "")), Index()).add(grams(text, SHINGLE))

    def avoid(self, record: Record) -> None:
        """From now on what overlaps with this problem of the evaluation set is turned away."""
        text = wording(record)
        if 0 < len(text) < NGRAM:
            self._brief.setdefault(len(text), set()).add(text)
        else:
            self._evaluation.add(grams(text, NGRAM))

    def refusal(self, record: Record, solution: str) -> str | None:
        """The first of REASONS that speaks against a problem; None lets it pass. `solution`: a right completion."""
        if not _well_posed(record, solution):
            return "ill_posed"
        text = wording(record)
        if len(text) > self.max_words:
            return "too_long"
        if text in self._known:
            return "copy"
        if self._overlaps(text):
            return "evaluation"
        return "near_copy" if self._is_near(text, record["answer"]) else None

    def _overlaps(self, text: tuple[str, ...]) -> bool:
        """The same words share all of their grams, so they overlap at any setting."""
        if any(not brief.isdisjoint(grams(text, size)) for size, brief in self._brief.items()):
            return True
        found = grams(text, NGRAM)
        return any(count >= self.overlap * min(size, len(found)) for size, count in self._evaluation.shared(found))

    def _is_near(self, text: tuple[str, ...], answer: str) -> bool:
        found = grams(text, SHINGLE)
        index = self._near.get(words(answer), Index())
        return any(count >= self.near * (size + len(found) - count) for size, count in index.shared(found))


def _well_posed(record: Record, solution: str) -> bool:
    """Whether the verifier finds the record's own answer in the solution, and that it is right."""
    attempt = record.extended(completion=solution, finish_reason="stop")
    try:
        judgement = verifiers.load(record["verifier"])(attempt)
    except RecordError:  # the problem is none of the verifier's
        return False
    return judgement.verdict == "correct" and judgement.extracted == record["answer"]
