"""What the operators of the embedded domain make of a chain."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.records import Record
from rlvr_cli.synthesis.chains import OPERATORS, chain_text, program
from rlvr_cli.tiny.chains import Chain, parse_prompt, render_derivation, render_prompt, solve

STEPS = st.lists(st.sampled_from(["+ 4", "- 7", "double", "flip", "nines"]), min_size=1, max_size=20)


def chain(*steps, start=29):
    lines = [f"{label}: {step} ." for label, step in zip("ABCDEFGHIJKLMNOPQRST", steps, strict=False)]
    return parse_prompt(" ".join([f"Start {start // 10} {start % 10} .", *lines, "=>"]))


def drawn(name, parent, other=None, draws=40):
    """The different children that many draws give."""
    made = [OPERATORS[name].draw(parent, other, random.Random(seed)) for seed in range(draws)]
    return {made_one for made_one in made if made_one is not None}


def texts(chains):
    return {" ".join(f"{step.op}{step.operand or ''}" for step in made.steps) for made in chains}


def difficulty(made: Chain) -> tuple[int, int, int]:
    ops = [step.op for step in made.steps]
    return sum(op in ("flip", "nines") for op in ops), ops.count("double"), len(ops)


@given(STEPS, STEPS, st.sampled_from(sorted(OPERATORS)), st.integers(0, 2**31))
def test_easier_is_easier_harder_is_harder_and_siblings_are_alike(steps, more, name, seed):
    parent = chain(*steps)
    made = OPERATORS[name].draw(parent, chain(*more, start=1), random.Random(seed))
    if made is None:
        return
    assert parse_prompt(render_prompt(made)) == made  # so it has a label for each step
    match OPERATORS[name].kind:
        case "easier":
            assert difficulty(made) < difficulty(parent)
            assert made.steps
        case "harder":
            assert difficulty(made) > difficulty(parent)
        case "sibling":
            assert difficulty(made) == difficulty(parent)


def test_drop_step_takes_one_of_the_hardest():
    assert texts(drawn("drop-step", chain("+ 1", "flip", "double", "nines"))) == {"+1 double nines", "+1 flip double"}
    assert texts(drawn("drop-step", chain("+ 1", "double", "- 2"))) == {"+1 -2"}
    assert texts(drawn("drop-step", chain("+ 1", "- 2"))) == {"+1", "-2"}
    assert drawn("drop-step", chain("flip")) == set()


def test_drop_half_goes_a_long_way_where_three_or_more_are_hard():
    parent = chain("flip", "+ 1", "nines", "nines", "flip")
    assert {difficulty(made)[0] for made in drawn("drop-half", parent)} == {2}
    assert texts(drawn("drop-half", chain("flip", "+ 1", "nines", "flip"))) == {"flip +1", "+1 nines", "+1 flip"}
    assert drawn("drop-half", chain("flip", "+ 1", "nines")) == set()


def test_ease_step_lowers_one_step_by_a_class_or_two():
    made = drawn("ease-step", chain("+ 1", "flip"))
    assert {difficulty(child) for child in made} == {(0, 1, 2), (0, 0, 2)}
    assert {difficulty(child) for child in drawn("ease-step", chain("double"))} == {(0, 0, 1)}
    assert drawn("ease-step", chain("+ 1", "- 2")) == set()


def test_the_derivation_of_a_cut_is_a_part_of_the_parents():
    parent = chain("+ 1", "flip", "- 2", "nines", "+ 3")
    right = render_derivation(parent, solve(parent))
    made = drawn("cut", parent)
    assert texts(made) == {"+1 flip", "+1 flip -2"}  # the last hard step is gone, the first is there
    assert texts(drawn("cut", chain("+ 1", "- 2", "flip"))) == {"+1", "+1 -2"}  # unless it is the only one
    assert texts(drawn("cut", chain("+ 1", "- 2", "+ 3"))) == {"+1", "+1 -2"}
    for child in made:
        lines = render_derivation(child, solve(child))[:-1]
        assert lines == right[: len(lines)]
    assert drawn("cut", chain("flip", "+ 1")) == set()  # nothing lies before it


def test_add_step_adds_a_fair_or_hard_one_anywhere():
    made = texts(drawn("add-step", chain("+ 1", "- 2"), draws=200))
    steps = ["double", "flip", "nines"]
    assert made == {text for step in steps for text in (f"{step} +1 -2", f"+1 {step} -2", f"+1 -2 {step}")}
    assert drawn("add-step", chain(*["+ 1"] * 20)) == set()  # there are 20 labels


def test_compose_goes_on_with_the_steps_of_another():
    first, second = chain("+ 1", "flip", start=12), chain("- 3", start=70)
    (made,) = drawn("compose", first, second)
    assert render_prompt(made) == "Start 1 2 . A: + 1 . B: flip . C: - 3 . =>"
    assert drawn("compose", first, None) == set()
    assert drawn("compose", chain(*["+ 1"] * 15), chain(*["- 1"] * 6)) == set()
    assert len(drawn("compose", chain(*["+ 1"] * 15), chain(*["- 1"] * 5))) == 1


def test_renumber_keeps_the_operations_and_reorder_the_steps():
    parent = chain("+ 1", "flip", "- 2")
    made = drawn("renumber", parent)
    assert {tuple(step.op for step in child.steps) for child in made} == {("+", "flip", "-")}
    assert len({child.start for child in made}) > 20
    assert texts(drawn("reorder", parent)) == {"+1 -2 flip", "flip +1 -2", "flip -2 +1", "-2 +1 flip", "-2 flip +1"}
    assert drawn("reorder", chain("+ 1", "+ 1")) == set()  # there is one order only


@pytest.mark.parametrize("name", ["easier", "harder", "sibling"])
def test_a_chain_without_steps_has_no_easier_child_and_no_crash(name):
    empty = parse_prompt("Start 0 7 . =>")
    for operator, found in OPERATORS.items():
        if found.kind == name == "easier":
            assert drawn(operator, empty) == set()
        else:
            drawn(operator, empty, empty)


def test_a_program_is_read_where_the_verifier_reads_it():
    text = "Start 1 2 . A: flip . =>"
    turns = [
        {"role": "user", "content": "Start 0 1 . A: + 1 . =>"},
        {"role": "assistant", "content": "A: + 1 on 0 1 = 0 2 . Answer 0 2"},
        {"role": "user", "content": text},
    ]
    found = chain("flip", start=12)
    assert program(Record({"prompt": text, "verifier": "chain"})) == found
    assert program(Record({"prompt": text, "verifier": "chain-answer"})) == found
    assert program(Record({"messages": turns, "verifier": "chain"})) == found
    assert chain_text(Record({"messages": turns[1:2]})) == ""
    assert program(Record({"prompt": text, "verifier": "exact"})) is None
    assert program(Record({"prompt": text})) is None
    assert program(Record({"prompt": "2 + 2 =", "verifier": "chain"})) is None
