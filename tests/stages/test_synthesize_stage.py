"""Recursive synthesis: children of measured problems, children of the children, and what holds for all of them."""

import random
from collections import Counter

import pytest
from chain_evaluator import answer_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.selection.history import OUTCOMES
from rlvr_cli.stages.synthesize import KINDS, Plan, Report, check_measured, synthesize
from rlvr_cli.synthesis.chains import OPERATORS
from rlvr_cli.synthesis.gates import NGRAM, Gates, grams, words
from rlvr_cli.tiny.problems import generate

EASIER = ("drop-step", "drop-half", "ease-step", "cut")
HARDER = ("add-step", "compose")
SIBLING = ("renumber", "reorder")


def hard_steps(record):
    return sum(word in ("flip", "nines") for word in record["prompt"].split())


def measured(record, n_correct, n=8, step=0, **columns):
    """The row of statistics of a problem, as bucketize writes it."""
    mixed = int(0 < n_correct < n)
    counts = {"n": n, "n_correct": n_correct, "groups_mixed": mixed, "policy_step": step}
    return Record({**record, **counts, **columns}, "stats.jsonl:1")


def by_rule(record, step=0):
    """Measured by a policy that solves what has no hard step, and now and then what has one."""
    return measured(record, {0: 8, 1: 3}.get(hard_steps(record), 0), step=step)


def problem(steps, name="p", start="1 2"):
    lines = [f"{label}: {step} ." for label, step in zip("ABCDEFGHIJKLMNOPQRST", steps, strict=False)]
    prompt = " ".join([f"Start {start} .", *lines, "=>"])
    return {"problem_id": name, "prompt": prompt, "answer": answer_of(prompt), "verifier": "chain"}


def made(rows, report=None, known=(), avoid=(), gates=None, **plan):
    return list(synthesize(rows, Plan(**plan), gates or Gates(), known, avoid, report))


TRAP = list(generate("trap"))
EVAL = [Record(record) for record in generate("eval")]
MIX = [by_rule(record) for record in TRAP[::8] + list(generate("learnable"))[200:360:16]]  # all kinds
TRAP_RECORDS = [Record(record) for record in TRAP]


def test_the_evaluator_of_this_file_agrees_with_the_embedded_answers():
    assert answer_of("Start 2 9 . A: - 4 . B: + 6 . C: double . =>") == "6 2"  # by hand
    assert answer_of("Start 0 3 . A: - 4 . B: flip . C: nines . =>") == "0 0"  # 99, 99, 00
    assert all(answer_of(record["prompt"]) == record["answer"] for record in TRAP)


@pytest.mark.parametrize(
    ("n_correct", "kind", "operators"), [(0, "easier", EASIER), (8, "harder", HARDER), (3, "sibling", SIBLING)]
)
def test_what_a_problem_gets_depends_on_how_it_was_solved(n_correct, kind, operators):
    rows = [measured(record, n_correct) for record in TRAP[-40:]]
    children = made(rows)
    assert {child["operator"] for child in children} == set(operators)
    assert {OPERATORS[child["operator"]].kind for child in children} == {kind}
    assert Counter(child["parent_id"] for child in children) == {row["problem_id"]: 2 for row in rows}


def test_every_outcome_has_operators():
    assert set(KINDS) == set(OUTCOMES)
    assert set(KINDS.values()) == {found.kind for found in OPERATORS.values()}


def test_one_group_all_wrong_and_one_all_right_is_in_the_band():
    report = Report()
    [child] = made([measured(problem(["flip", "nines"]), 4, groups_mixed=0)], report, children=1)
    assert OPERATORS[child["operator"]].kind == "sibling"
    assert report.outcomes == {"in_band": 1}


def test_the_last_measurement_counts():
    record = problem(["+ 1", "flip", "nines"])
    rows = [measured(record, 8, step=2), measured(record, 0, step=7), measured(record, 3, step=1)]
    assert {OPERATORS[child["operator"]].kind for child in made(rows)} == {"easier"}


def test_of_two_rows_at_one_step_the_later_counts():
    record = problem(["+ 1", "flip", "nines"])
    rows = [measured(record, 8), measured(record, 0, temperature=0.5)]
    for order, kind in ((rows, "easier"), (rows[::-1], "harder")):
        assert {OPERATORS[child["operator"]].kind for child in made(order, operators=(*EASIER, "add-step"))} == {kind}


def test_every_answer_passes_the_evaluator_and_every_child_has_its_lineage():
    children = made(MIX, avoid=EVAL)
    assert len(children) == 2 * len(MIX)
    parents = {row["problem_id"]: row for row in MIX}
    for child in children:
        assert child["answer"] == answer_of(child["prompt"])
        assert child["parent_id"] in parents
        assert (child["root_id"], child["generation"]) == (child["parent_id"], 1)
        assert child["source"] == parents[child["parent_id"]]["source"]
        assert not {"kind", "n", "n_correct", "policy_step", "groups_mixed"} & set(child)
    composed = [child for child in children if child["operator"] == "compose"]
    assert composed
    for child in composed:
        assert child["partner_id"] in parents
        assert child["partner_id"] != child["parent_id"]
    assert all("partner_id" not in child for child in children if child["operator"] != "compose")


def eight_words(prompt):
    found = [word.strip(".:").lower() for word in prompt.split() if word != "."]
    return {tuple(found[at : at + 8]) for at in range(len(found) - 7)}


def test_generations_reach_the_band_and_keep_every_promise_on_the_way():
    """Four runs, each on all statistics so far: from a pool that is mostly out of reach into the band."""
    rows = [by_rule(record) for record in TRAP[80::8]]  # two to four hard steps: all wrong
    given_names = {row["problem_id"] for row in rows}
    every = list(rows)
    for step in range(4):
        report = Report()
        children = made(rows, report, known=every, avoid=EVAL)
        every += children
        rows += [by_rule(child, step) for child in children]
        assert report.operators.total() == len(children)
    names = {record["problem_id"]: record for record in every}
    prompts = [record["prompt"] for record in every]
    assert len(set(prompts)) == len(prompts) == len(names)  # no duplicates, within and over the runs
    assert not set(prompts) & {record["prompt"] for record in EVAL}
    overlaps = [eight_words(record["prompt"]) for record in EVAL]
    for record in every[len(given_names) :]:
        assert record["answer"] == answer_of(record["prompt"])
        parent, root = names[record["parent_id"]], names[record["root_id"]]  # both exist
        assert record["generation"] == parent.get("generation", 0) + 1 <= 4
        assert root["problem_id"] == parent.get("root_id", parent["problem_id"])
        assert root["problem_id"] in given_names
        own = eight_words(record["prompt"])
        assert all(len(own & other) < max(0.5 * min(len(own), len(other)), 1) for other in overlaps if own and other)
    in_band = [record for record in every if hard_steps(record) == 1]
    assert {record.get("root_id") for record in in_band} == given_names  # each root has a descendant in the band
    assert len(in_band) > len(every) / 4
    # the account of the last run tells the same of the measured ones
    generations = report.account.figures()["generations"]
    assert set(generations) == {"1", "2", "3", "4"}
    for number, row in generations.items():
        found = [r for r in every[: len(every) - len(children)] if r.get("generation") == int(number)]
        hard = Counter(min(hard_steps(record), 2) for record in found)
        assert (row["too_easy"], row["in_band"], row["too_hard"]) == (hard[0], hard[1], hard[2])
        assert row["children"] - row["new"] == row["measured"] == len(found)


def test_measured_children_that_missed_the_band_are_parents_to_the_depth_limit():
    lineage = {"generation": 2, "parent_id": "a", "root_id": "r", "operator": "cut"}
    row = measured({**problem(["flip", "+ 1", "nines"]), **lineage}, 0)
    report = Report()
    assert made([row], report, max_generation=2) == []
    assert report.left_out == {"max_generation": 1}
    for child in made([row], max_generation=3):
        assert (child["parent_id"], child["root_id"], child["generation"]) == ("p", "r", 3)


def texts(children):
    return [child["prompt"] for child in children]


@given(st.randoms(use_true_random=False))
@settings(max_examples=10, deadline=None)
def test_the_order_of_the_input_is_irrelevant(rng):
    rows = list(MIX)
    known = [Record(record) for record in TRAP]
    rng.shuffle(rows)
    rng.shuffle(known)
    assert made(rows, known=known, count=60) == made(MIX, known=TRAP_RECORDS, count=60)


def test_a_child_of_one_problem_is_the_same_whatever_other_problems_are_there():
    alone = {row["problem_id"]: made([row]) for row in MIX if row["n_correct"] < 8}  # composition takes two
    together = made(MIX)
    for name, children in alone.items():
        assert [child for child in together if child["parent_id"] == name] == children != []


def test_another_seed_and_another_measurement_give_other_children():
    first = texts(made(MIX))
    assert first == texts(made(MIX))
    assert first != texts(made(MIX, seed=1))
    later = [Record({**row, "policy_step": 1}) for row in MIX]
    for operator in ("renumber", "add-step"):  # of many outcomes
        before, after = (texts(made(rows, operators=(operator,))) for rows in (MIX, later))
        assert len(after) == len(before) > 0
        assert len(set(after) - set(before)) > len(before) / 2


def test_the_same_call_with_the_children_known_gives_fresh_ones():
    first = made(MIX)
    second = made(MIX, known=first)
    assert len(second) == len(first)
    assert not set(texts(first)) & set(texts(second))


def test_call_after_call_on_one_measurement_goes_on():
    rows = [measured(problem(["flip", "+ 1", "nines"]), 3)]
    known = []
    for _ in range(25):
        [child] = made(rows, known=known, operators=("renumber",), children=1)
        known.append(child)
    assert len(set(texts(known))) == 25


def test_a_problem_uses_its_operators_in_turn_from_call_to_call():
    rows = [measured(problem(["flip", "+ 1", "nines", "+ 2", "flip", "- 3", "nines"]), 0)]
    known = []
    for _ in range(4):
        known += made(rows, known=known, children=1)
    assert {child["operator"] for child in known} == set(EASIER)


def test_a_problem_that_can_give_no_more_is_exhausted():
    row = measured(problem(["flip", "nines"]), 0)
    report = Report()
    children = made([row], report, operators=("drop-step", "cut"), children=100)
    assert len(children) == len(set(texts(children))) == 2  # `cut` makes one of the two that `drop-step` makes
    assert not report.left_out
    report = Report()
    assert made([row], report, operators=("drop-step", "cut"), known=children) == []
    assert report.left_out == {"exhausted": 1}


def test_the_count_is_spread_over_the_problems_and_those_with_the_fewest_children_come_first():
    rows = MIX[:20]
    first = made(rows, count=12)
    assert len(first) == 12
    assert set(Counter(child["parent_id"] for child in first).values()) == {1}
    second = made(rows, known=first, count=8)
    parents = {child["parent_id"] for child in first} | {child["parent_id"] for child in second}
    assert parents == {row["problem_id"] for row in rows}
    more = made(rows, count=25)
    assert sorted(Counter(child["parent_id"] for child in more).values()) == [1] * 15 + [2] * 5
    assert texts(more)[:12] == texts(first)


def test_which_come_first_depends_on_the_seed():
    firsts = {made(MIX, count=1, seed=seed)[0]["parent_id"] for seed in range(10)}
    assert len(firsts) > 3


def test_only_the_operators_asked_for_are_used():
    report = Report()
    children = made(MIX, report, operators=("cut", "add-step"))
    assert {child["operator"] for child in children} == {"cut", "add-step"}
    assert report.left_out["not_asked"] == report.outcomes["in_band"] > 0
    assert made(MIX, operators=("add-step", "cut")) == children


def test_a_problem_uses_its_operators_in_turn():
    row = measured(problem(["flip", "+ 1", "nines", "+ 2", "flip", "- 3", "nines"]), 0)
    assert {child["operator"] for child in made([row], children=4)} == set(EASIER)


def test_what_is_not_known_or_has_no_program_gets_no_child_and_is_counted():
    report = Report()
    rows = [
        measured(problem(["flip", "nines"], "once"), 0, n=1),
        measured(problem(["flip", "nines"], "never"), 0, n=0),
        measured({"problem_id": "prose", "prompt": "2 + 2 = ?", "answer": "4", "verifier": "math"}, 0),
        measured({"problem_id": "no chain", "prompt": "2 + 2 = ?", "answer": "4", "verifier": "chain"}, 0),
    ]
    assert made(rows, report) == []
    assert report.left_out == {"unmeasured": 2, "no_program": 2}
    assert report.outcomes == {"too_hard": 2}


def test_composition_takes_no_partner_of_a_later_generation():
    first = measured(problem(["+ 1"], "first"), 8)
    second = measured({**problem(["+ 2"], "second", "3 4"), "generation": 1, "parent_id": "x"}, 8)
    children = made([first, second], operators=("compose",), children=1)
    assert [(child["parent_id"], child["partner_id"], child["generation"]) for child in children] == [
        ("second", "first", 2)
    ]
    assert children[0]["prompt"] == "Start 3 4 . A: + 2 . B: + 1 . =>"


def test_messages_make_messages():
    record = problem(["flip", "nines"])
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": record.pop("prompt")}]
    (child, *_) = made([measured({**record, "messages": turns}, 0)])
    assert child["messages"][0] == turns[0]
    assert child["answer"] == answer_of(child["messages"][1]["content"])


def test_refusals_are_counted_by_gate_and_another_candidate_comes_in_their_place():
    row = measured(problem(["flip", "+ 1", "nines"]), 0)
    wanted = problem(["flip", "+ 1"], "other")
    report = Report()
    children = made([row], report, known=[Record(wanted)], operators=("drop-step",), children=1)
    assert texts(children) == ["Start 1 2 . A: + 1 . B: nines . =>"]
    seen = {made([row], operators=("drop-step",), children=1, seed=seed)[0]["prompt"] for seed in range(20)}
    assert seen == {wanted["prompt"], children[0]["prompt"]}
    refusals = Counter()
    for seed in range(20):
        for gate, others in (("known", [Record(wanted)]), ("avoid", [Record(wanted)])):
            report = Report()
            made([row], report, operators=("drop-step",), children=1, seed=seed, **{gate: others})
            refusals.update(report.refused)
    assert set(refusals) == {"copy", "evaluation"}
    assert max(refusals.values()) <= 20  # a candidate that is drawn again counts once
    short = Report()
    assert made([row], short, gates=Gates(max_words=8), operators=("drop-step",)) == []
    assert short.refused == {"too_long": 2}
    assert short.left_out == {"exhausted": 1}


def test_the_gates_lose_little_of_the_embedded_domain_by_default():
    report = Report()
    children = made([by_rule(record) for record in TRAP], report, avoid=EVAL)
    assert len(children) == 800
    assert report.refused["near_copy"] + report.refused["evaluation"] <= 8
    assert not report.left_out


def test_chance_makes_single_8_grams_common_and_half_of_them_rare():
    """Why --overlap is a share: the numbers in synthesis/gates.py."""
    evaluation = [grams(words(record["prompt"]), NGRAM) for record in EVAL]
    shares = []
    for child in made([measured(record, 0) for record in TRAP]):
        own = grams(words(child["prompt"]), NGRAM)
        shares.append(max(len(own & other) / min(len(own), len(other)) for other in evaluation))
    assert (len(shares), sum(share > 0 for share in shares), max(shares)) == (800, 137, pytest.approx(4 / 9))


def test_the_children_of_one_problem_are_drawn_apart():
    report = Report()
    made([measured(problem(["flip", "+ 1", "- 2"]), 3)], report, operators=("renumber",), children=5)
    assert not report.refused  # the second child is no second try at the first


def test_rows_that_are_no_statistics_are_refused():
    with pytest.raises(RecordError, match=r"stats.jsonl:4: n is missing; give the output of rlvr bucketize"):
        check_measured(Record(problem(["flip"]), "stats.jsonl:4"))
    with pytest.raises(RecordError, match=r"stats.jsonl:1: prompt is missing"):
        check_measured(measured({"problem_id": "p"}, 0))
    with pytest.raises(RecordError, match=r"stats.jsonl:1: generation is -1, expected 0 or more"):
        check_measured(measured(problem(["flip"]), 0, generation=-1))


def test_random_is_not_left_to_chance():
    random.seed(1)
    first = made(MIX[:5])
    random.seed(2)
    assert made(MIX[:5]) == first
