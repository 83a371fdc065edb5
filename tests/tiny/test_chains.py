"""The arithmetic of the embedded domain, against an evaluator written apart from it."""

import random

import pytest

from rlvr_cli.tiny.chains import Chain, Step, parse_prompt, render_derivation, render_prompt, solve
from rlvr_cli.tiny.problems import DIRECTORY, SETS, draw_chain, generate


def evaluate(prompt: str) -> str:
    """The answer of a problem's text, on digits as strings."""
    words = prompt.split()
    value = words[1] + words[2]
    for part in " ".join(words[4:-1]).split(" . "):
        _, op, *operand = part.removesuffix(" .").split()
        number = int(value)
        if op in "+-":
            value = f"{(number + int(op + operand[0])) % 100:02d}"
        elif op == "double":
            value = f"{number + number:03d}"[-2:]
        elif op == "flip":
            value = value[::-1]
        else:
            value = "".join(str(9 - int(digit)) for digit in value)
    return " ".join(value)


def test_the_example_of_the_module():
    prompt = "Start 2 9 . A: - 4 . B: + 6 . C: double . =>"
    chain = parse_prompt(prompt)
    assert chain == Chain(29, (Step("-", 4), Step("+", 6), Step("double")))
    assert render_prompt(chain) == prompt
    assert solve(chain) == [25, 31, 62]
    assert " ".join(render_derivation(chain, solve(chain))) == (
        "A: - 4 on 2 9 = 2 5 . B: + 6 on 2 5 = 3 1 . C: double on 3 1 = 6 2 . Answer 6 2"
    )


@pytest.mark.parametrize("name", SETS)
def test_every_answer_is_exact_and_every_prompt_reads_back(name):
    for record in generate(name):
        assert record["answer"] == evaluate(record["prompt"])
        assert render_prompt(parse_prompt(record["prompt"])) == record["prompt"]


def test_no_problem_stands_twice_in_or_across_the_sets():
    prompts = [record["prompt"] for name in SETS for record in generate(name)]
    assert len(set(prompts)) == len(prompts) == sum(sum(kinds.values()) for kinds in SETS.values())


@pytest.mark.parametrize("name", SETS)
def test_the_packaged_sets_are_what_the_generator_makes(name):
    import orjson

    packaged = [orjson.loads(line) for line in (DIRECTORY / f"{name}.jsonl").read_bytes().splitlines()]
    assert packaged == list(generate(name))


@pytest.mark.parametrize("kind", ["easy", "medium", "hard3", "deep2"])
def test_kinds_hold_the_operations_that_they_promise(kind):
    rng = random.Random(0)
    for _ in range(50):
        ops = [step.op for step in draw_chain(kind, rng).steps]
        hard = [op for op in ops if op in ("flip", "nines")]
        assert len(hard) == (int(kind[-1]) if kind[-1].isdigit() else 0)
        assert ops.count("double") == (1 if kind == "medium" else 0)
        if kind == "deep2":
            assert ops[-2:] == hard
            assert len(ops) in (13, 14)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("Start 2 9 . A: - 4 .", "ends with '=>'"),
        ("Begin 2 9 . =>", "begins with 'Start'"),
        ("Start 2 x . =>", "are not two digits"),
        ("Start 2 9 . B: - 4 . =>", "expected step A:"),
        ("Start 2 9 . A: halve . =>", "no operation"),
        ("Start 2 9 . A: + 12 . =>", "no operation"),
        ("Start 2 9 . A: + 0 . =>", "no operation"),
    ],
)
def test_a_text_that_is_no_chain_says_why(prompt, reason):
    with pytest.raises(ValueError, match=reason):
        parse_prompt(prompt)
