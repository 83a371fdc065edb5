"""Thompson sampling against integrals, the cap and the rest of never-give-up, mastery."""

import math
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_cli.difficulty.estimators import signal_chance
from rlvr_cli.records import Record
from rlvr_cli.selection.history import read_history
from rlvr_cli.selection.methods import METHODS, Tuning
from rlvr_cli.selection.mix import classes_of, parse_mix
from rlvr_cli.stages.select import select

INFORMED = [method for method in METHODS if method != "uniform"]


def problem(name, **columns):
    return Record({"problem_id": name, "prompt": f"{name}?", **columns})


def row(name, c, n=8, step=0, **columns):
    return Record({"problem_id": name, "n": n, "n_correct": c, "policy_step": step, **columns})


def chosen(method, pool, rows, batch, step=1, seed=0, mix=None, **tuning):
    pool = [problem(name) if isinstance(name, str) else name for name in pool]
    picked = select(
        pool,
        step=step,
        batch=batch,
        method=method,
        seed=seed,
        stats=rows,
        mix=mix and parse_mix(mix),
        tuning=Tuning(**tuning),
    )
    return {record["problem_id"]: record["select_reason"] for record in picked}


def beats(first, second, cells=4000):
    """The chance that min(p, 1-p) of one Beta(a, b) is larger than that of another, by the midpoint rule."""

    def folded(a, b):
        log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        halves = [(i + 0.5) / (2 * cells) for i in range(cells)]
        both = [(m, 1 - m) for m in halves]
        return [
            sum(math.exp(log_scale + (a - 1) * math.log(p) + (b - 1) * math.log(1 - p)) for p in pair) / (2 * cells)
            for pair in both
        ]

    below = total = 0.0
    for mine, other in zip(folded(*first), folded(*second), strict=True):
        total += mine * (below + other / 2)
        below += other
    return total


def test_the_reference_knows_what_is_plain():
    assert beats((1, 1), (1, 1)) == pytest.approx(0.5, abs=1e-3)
    assert beats((500, 500), (1, 900)) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("rows", "posteriors"),
    [
        ([], [(1, 1), (1, 1)]),
        ([row("a", 0, step=5)], [(1, 9), (1, 1)]),
        ([row("a", 4, step=5), row("b", 1, step=5)], [(5, 5), (2, 8)]),
        ([row("a", 8, step=5), row("b", 0, n=2, step=5)], [(9, 1), (1, 3)]),
        ([row("a", 8, step=1), row("a", 0, step=5), row("b", 2, step=3)], [(1 + 8 / 4, 1 + 8), (1 + 2 / 2, 1 + 6 / 2)]),
    ],
)
def test_thompson_chooses_as_often_as_the_posteriors_say(rows, posteriors):
    """Of two problems at step 5 with a half-life of 2, over 2000 seeds; 0.045 is four standard errors at a half."""
    won = Counter(next(iter(chosen("thompson", "ab", rows, 1, 5, seed, half_life=2))) for seed in range(2000))
    assert won["a"] / 2000 == pytest.approx(beats(*posteriors), abs=0.045)


@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from([2, 3, 8, 32]))
def test_the_largest_signal_is_the_largest_of_p_and_its_complement_whatever_the_group(p, q, k):
    if min(p, 1 - p) < min(q, 1 - q):
        assert signal_chance(p, k) <= signal_chance(q, k)


def test_thompson_takes_the_largest_signal_of_what_it_drew():
    rows = [row(f"p{c}", c) for c in range(9)]
    reasons = chosen("thompson", [f"p{c}" for c in range(9)] + ["new"], rows, 10).values()
    drawn = [float(re.search(r"drew (0\.\d+) from", reason)[1]) for reason in reasons]
    signals = [signal_chance(p, 8) for p in drawn]
    assert signals == pytest.approx(sorted(signals, reverse=True), abs=0.01)


def test_thompson_says_what_it_drew_and_from_what():
    reasons = chosen("thompson", ["new", "old"], [row("old", 3, step=2)], 2, step=10, half_life=8)
    assert re.fullmatch(r"thompson: untried; drew 0\.\d{3} from Beta\(1, 1\)", reasons["new"])
    assert re.fullmatch(
        r"thompson: last group mixed at step 2 \(3/8\); drew 0\.\d{3} from Beta\(2\.5, 3\.5\)", reasons["old"]
    )


def test_thompson_explores_what_was_never_tried_and_forgets_what_is_stale():
    names = [f"p{i}" for i in range(30)]
    rows = [row(name, 8 * (i % 2)) for i, name in enumerate(names)]

    def share_of(name, **options):
        """How often 6 of the 31 problems hold this one."""
        return sum(name in chosen("thompson", [*names, "new"], rows, 6, seed=s, **options) for s in range(200)) / 200

    assert share_of("new") > 0.5
    assert share_of("p0") < 0.3
    assert share_of("new", step=200) < 0.35  # by then all are as good as new: 6 in 31
    assert share_of("new", step=200, half_life=math.inf) > 0.5


def test_a_draw_depends_on_nothing_but_seed_step_and_problem():
    rows = [row(f"p{i}", i % 9) for i in range(20)]
    names = [f"p{i}" for i in range(20)]
    whole = chosen("thompson", names, rows, 20)
    part = chosen("thompson", names[5:10][::-1], rows[::-1], 5)
    assert part.items() <= whole.items()
    for other in ({"seed": 1}, {"step": 2, "half_life": math.inf}):
        assert list(chosen("thompson", names, rows, 20, **other)) != list(whole)


def test_duplicate_statistics_do_not_count_twice():
    rows = [row("a", 3), row("b", 0)]
    assert chosen("thompson", "ab", rows + rows, 2) == chosen("thompson", "ab", rows, 2)


# --- never-give-up -----------------------------------------------------------------------------------------------

LOST = [f"lost{i}" for i in range(40)]
FINE = [f"fine{i}" for i in range(40)]


@pytest.mark.parametrize(("cap", "batch", "count"), [(0.25, 32, 8), (0.29, 20, 5), (0.1, 30, 3), (0, 8, 0), (1, 8, 8)])
def test_unsolved_problems_come_first_and_no_more_than_the_cap(cap, batch, count):
    rows = [row(name, 0, step=i) for i, name in enumerate(LOST)] + [row(name, 4) for name in FINE]
    names = list(chosen("never-give-up", LOST + FINE, rows, batch, step=50, unsolved_cap=cap))
    assert names[:count] == LOST[:count]  # the least recently tried
    assert len(names) == batch
    assert not set(names[count:]) & set(LOST)


def test_a_batch_that_only_unsolved_problems_could_fill_stays_short():
    rows = [row(name, 0) for name in LOST]
    found = chosen("never-give-up", [*LOST, "new"], rows, 20)
    assert Counter(found.values()) == {"never-give-up: unsolved at step 0 (0/8 in all)": 5, "never-give-up: untried": 1}


def test_one_success_ever_and_a_problem_is_not_unsolved():
    rows = [row("once", 1, step=0), row("once", 0, step=1), row("never", 0, step=0), row("never", 0, step=1)]
    assert chosen("never-give-up", ["once", "never"], rows, 2, step=2, unsolved_cap=0.5) == {
        "never": "never-give-up: unsolved at step 1 (0/16 in all)",
        "once": "never-give-up: last tried at step 1",
    }


def test_what_was_never_judged_is_not_unsolved():
    found = chosen("never-give-up", ["a", "b"], [row("a", 0, n=0)], 2, unsolved_cap=0)
    assert list(found) == ["b", "a"]


def test_the_rest_of_the_batch_is_as_frontier_has_it():
    rows = [row("mixed", 5, step=3), row("once", 2, step=0), row("once", 0, step=1), row("solved", 8, step=0)]
    found = chosen("never-give-up", ["once", "solved", "new", "mixed"], rows, 4, step=10)
    assert list(found.items()) == [
        ("mixed", "never-give-up: last group mixed at step 3 (5/8)"),
        ("new", "never-give-up: untried"),
        ("solved", "never-give-up: last tried at step 0"),  # rested 10 steps
        ("once", "never-give-up: last tried at step 1"),
    ]


def test_solved_problems_rest_until_their_time_is_over():
    rows = [row("solved", 8, step=4), row("mixed", 4, step=4)]
    for step, rest, back in ((13, 10, False), (14, 10, True), (4, 0, True), (6, 3, False), (7, 3, True)):
        found = chosen("never-give-up", ["solved", "mixed"], rows, 2, step=step, rest=rest)
        resting = found["solved"].startswith("never-give-up: resting, but nothing else is left; last tried at step 4")
        assert resting != back


def test_a_resting_problem_gives_way_to_any_other_class():
    rested = [problem(f"done{i}") for i in range(4)]
    young = [problem(f"child{i}", generation=1) for i in range(4)]
    rows = [row(f"done{i}", 8) for i in range(4)]
    mix = "problems=0.5,children=0.5"
    assert sorted(chosen("never-give-up", rested + young, rows, 4, mix=mix)) == [f"child{i}" for i in range(4)]
    assert len(chosen("never-give-up", rested + young, rows, 6, mix=mix)) == 6


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, 0, 0, 4, 8])), min_size=1, max_size=40),
    st.integers(1, 40),
    st.sampled_from([0, 0.1, 0.25, 0.5, 1]),
    st.sampled_from([None, "problems=0.5,children=0.5", "frontier=0.5,generation-1=0.3,problems=0.2"]),
)
@settings(max_examples=150, deadline=None)
def test_the_cap_holds_over_all_classes(kinds, batch, cap, mix):
    pool = [problem(f"{i:02}", generation=generation) for i, (generation, _) in enumerate(kinds)]
    rows = [row(f"{i:02}", c) for i, (_, c) in enumerate(kinds) if c is not None]
    found = chosen("never-give-up", pool, rows, batch, unsolved_cap=cap, mix=mix)
    unsolved = [name for name in found if kinds[int(name)][1] == 0]
    bound = math.floor(min(batch, len(pool)) * cap + 1e-9)
    assert len(unsolved) <= bound
    assert all("unsolved" in found[name] for name in unsolved)
    classes = classes_of(pool, parse_mix(mix), read_history(rows)) if mix else {"": [r["problem_id"] for r in pool]}
    waiting = {name: {i for i in names if kinds[int(i)][1] == 0} for name, names in classes.items()}
    if len(unsolved) < min(bound, sum(map(len, waiting.values()))):
        for name, names in waiting.items():  # then the slots of each class that has more are all taken by such
            assert names <= set(unsolved) or not set(classes[name]) & set(found) - set(unsolved)


@pytest.mark.parametrize("mix", [None, "frontier=0.5,problems=0.5", "frontier=0.6,children=0.1,problems=0.3"])
def test_no_part_of_the_cap_is_lost_on_a_class_without_unsolved_problems(mix):
    rows = [row(name, 0) for name in LOST] + [row(name, 4) for name in FINE]
    found = chosen("never-give-up", LOST + FINE, rows, 32, mix=mix)
    assert len(found) == 32
    assert sum(name in LOST for name in found) == 8


# --- mastery -----------------------------------------------------------------------------------------------------

FAMILY = [problem("parent"), problem("new"), problem("mixed"), problem("old")] + [
    problem(f"child{i}", parent_id="parent", generation=1, operator="drop-step") for i in range(2)
]
MEASURED = [row("parent", 0, step=3), row("mixed", 4, step=3), row("old", 0, step=0)]
MASTERED = [row("child0", 7, step=4), row("child1", 8, step=4)]


@pytest.mark.parametrize(("method", "first"), [("frontier", ["mixed", "child0"]), ("never-give-up", [])])
def test_the_parent_of_mastered_children_is_first_of_those_that_are_not_mixed(method, first):
    found = chosen(method, FAMILY, MEASURED + MASTERED, 6, step=5)
    assert list(found)[: len(first) + 1] == [*first, "parent"]
    why = "unsolved at step 3 (0/8 in all)" if method == "never-give-up" else "last tried at step 3"
    assert found["parent"] == f"{method}: children mastered (all 2 measured), {why}"
    stricter = chosen(method, FAMILY, MEASURED + MASTERED, 6, step=5, mastery=0.9).values()
    assert not any("children mastered" in reason for reason in stricter)


def test_a_problem_that_was_solved_before_comes_back_too_when_its_children_are_mastered():
    rows = [row("parent", 1, step=0), *MEASURED, *MASTERED]
    found = chosen("never-give-up", FAMILY, rows, 3, step=5)
    assert list(found.items())[-1] == (
        "parent",
        "never-give-up: children mastered (all 2 measured), last tried at step 3",
    )


def test_thompson_forgets_the_counts_of_a_problem_whose_children_are_mastered():
    found = chosen("thompson", FAMILY, MEASURED + MASTERED, 6, step=5)
    assert re.fullmatch(
        r"thompson: children mastered \(all 2 measured\), last tried at step 3; drew 0\.\d+ from Beta\(1, 1\)",
        found["parent"],
    )
    assert "Beta(1, " in found["old"] and "Beta(1, 1)" not in found["old"]


def test_without_lineage_mastery_changes_nothing():
    plain = [problem(record["problem_id"]) for record in FAMILY]
    for method in INFORMED:
        found = chosen(method, plain, MEASURED + MASTERED, 6, step=5)
        assert not any("children" in reason for reason in found.values())
