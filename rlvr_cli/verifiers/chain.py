"""Chains of arithmetic (tiny/chains.py): every line of the derivation must follow, and the answer from the last line.

A chain has exactly one right derivation, so judging is comparing with it, white space aside. The problem is read from
`prompt`, or from the last turn of the user. `judge_answer` looks at the answer alone: the verifier `chain-answer`, for
comparison, since luck passes some wrong derivations there.
"""

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.tiny.chains import Chain, parse_prompt, render_derivation, solve
from rlvr_cli.verifiers.extraction import nothing
from rlvr_cli.verifiers.judgement import Judgement, correct, no_answer, truncated, wrong


def check(record: Record) -> None:
    """The problem is a chain. Raises RecordError."""
    _problem(record)


def judge(record: Record) -> Judgement:
    """Compare the derivation with the right one, line by line."""
    chain = _problem(record)
    wanted = render_derivation(chain, solve(chain))
    lines = _lines(record["completion"])
    extracted = _answer(record["completion"])
    for number, right in enumerate(wanted):
        line = lines[number] if number < len(lines) else None
        if line == right:
            continue
        if line is None or (extracted is None and number == len(lines) - 1 and right.startswith(line)):
            return nothing(record, f"the derivation stops at line {number + 1}, which should be {right!r}")
        reason = f"line {number + 1} is {line!r} and should be {right!r}"
        if extracted is None:
            cut = record.get("finish_reason") == "length"
            return truncated(reason, line=number + 1) if cut else no_answer(reason, line=number + 1)
        return wrong(extracted, reason, line=number + 1)
    if len(lines) > len(wanted):
        return wrong(extracted, f"text after the answer: {lines[len(wanted)][:60]!r}", line=len(wanted) + 1)
    return correct(extracted)


def judge_answer(record: Record) -> Judgement:
    """Compare the words after the last `Answer` with the right ones."""
    chain = _problem(record)
    right = render_derivation(chain, solve(chain))[-1].removeprefix("Answer ")
    extracted = _answer(record["completion"])
    if extracted is None:
        return nothing(record, "there is no Answer")
    return correct(extracted) if extracted == right else wrong(extracted, f"expected {right!r}")


quick = judge
quick_answer = judge_answer


def _problem(record: Record) -> Chain:
    text = record.get("prompt")
    if text is None:
        turns = [turn["content"] for turn in record.get("messages", []) if turn["role"] == "user"]
        text = turns[-1] if turns else ""
    try:
        return parse_prompt(text)
    except ValueError as bad:
        raise RecordError(f"{record.where}: prompt is no chain: {bad}; name another verifier") from bad


def _lines(completion: str) -> list[str]:
    """The lines of a derivation, white space normalized: each ends with its `.`, the last is the answer's."""
    lines: list[list[str]] = [[]]
    for word in completion.split():
        lines[-1].append(word)
        if word == ".":
            lines.append([])
    return [" ".join(words) for words in lines if words]


def _answer(completion: str) -> str | None:
    """The words after the last `Answer`; None when there is none, or fewer than two digits' worth after it."""
    words = completion.rpartition("Answer")[2].split() if "Answer" in completion else []
    return " ".join(words) if len(words) >= 2 else None
