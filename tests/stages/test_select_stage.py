"""Which problems the batch of a step holds, and why."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.selection.history import read_history
from rlvr_cli.selection.methods import METHODS
from rlvr_cli.selection.mix import classes_of, parse_mix
from rlvr_cli.stages.select import Pool, select


def problems(*names):
    return [Record({"problem_id": name, "prompt": f"{name}?"}, f"f.jsonl:{i}") for i, name in enumerate(names, 1)]


def stats(problem, c, n=8, step=0, **columns):
    return Record({"problem_id": problem, "n": n, "n_correct": c, "policy_step": step, **columns})


def uniform(count, step, batch, seed=0):
    picked = select(problems(*map(str, range(count))), step=step, batch=batch, method="uniform", seed=seed)
    return [(record["problem_id"], record["select_reason"]) for record in picked]


def frontier(names, rows, batch, step=1, seed=0):
    picked = select(problems(*names), step=step, batch=batch, method="frontier", seed=seed, stats=rows)
    return [(record["problem_id"], record["select_reason"]) for record in picked]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 5), st.integers(0, 3))
def test_uniform_is_without_replacement_an_epoch_at_a_time(count, batch, steps, seed):
    batch = min(batch, count)
    drawn = [uniform(count, step, batch, seed) for step in range(steps)]
    for group in drawn:
        assert len({name for name, _ in group}) == batch  # also where the batch crosses the border of two epochs
    names = [name for group in drawn for name, _ in group]
    for epoch in range(len(names) // count):
        assert len(set(names[epoch * count : (epoch + 1) * count])) == count
    assert [reason for group in drawn for _, reason in group] == [
        f"uniform: epoch {place // count}" for place in range(len(names))
    ]


def test_uniform_differs_by_epoch_and_by_seed():
    first = [uniform(20, 0, 20, seed)[:] for seed in (0, 1)]
    assert [name for name, _ in first[0]] != [name for name, _ in first[1]]
    assert [name for name, _ in first[0]] != [name for name, _ in uniform(20, 1, 20)]


def test_uniform_favours_no_problem_at_a_border():
    """Over many seeds each problem is equally often the first of the second epoch."""
    firsts = Counter(uniform(5, 1, 3, seed)[2][0] for seed in range(2000))
    assert all(300 < firsts[str(name)] < 500 for name in range(5))


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_input_is_irrelevant(method):
    names = ["a", "b", "c", "d", "e", "f"]
    rows = [stats("b", 3), stats("c", 8)]
    picked = [
        [record["problem_id"] for record in select(order, step=3, batch=4, method=method, seed=5, stats=rows)]
        for order in (problems(*names), problems(*reversed(names)))
    ]
    assert picked[0] == picked[1]


def test_frontier_takes_mixed_groups_then_untried_then_the_least_recently_tried():
    rows = [stats("solved", 8, step=2), stats("hopeless", 0, step=1), stats("mixed", 5, step=3)]
    assert frontier(["solved", "hopeless", "mixed", "new"], rows, batch=4) == [
        ("mixed", "frontier: last group mixed at step 3 (5/8)"),
        ("new", "frontier: untried"),
        ("hopeless", "frontier: last tried at step 1"),
        ("solved", "frontier: last tried at step 2"),
    ]


def test_among_mixed_groups_the_least_recently_tried_is_first():
    rows = [stats("late", 1, step=5), stats("early", 7, step=2)]
    assert [name for name, _ in frontier(["late", "early"], rows, batch=2)] == ["early", "late"]


def test_the_row_with_the_largest_step_is_the_last_one():
    rows = [stats("a", 8, step=4), stats("a", 4, step=1), stats("b", 4, step=4), stats("b", 0, step=1)]
    found = dict(frontier(["a", "b"], rows, batch=2))
    assert found == {"a": "frontier: last tried at step 4", "b": "frontier: last group mixed at step 4 (4/8)"}


def test_partial_rewards_can_be_mixed_where_all_count_as_correct():
    assert "mixed" in frontier(["a"], [stats("a", 8, groups_mixed=1)], batch=1)[0][1]
    assert "mixed" not in frontier(["a"], [stats("a", 4, groups_mixed=0)], batch=1)[0][1]


def test_statistics_without_a_step_are_the_oldest():
    row = stats("a", 0)
    del row["policy_step"]
    assert frontier(["a"], [row], batch=1) == [("a", "frontier: last tried at an unknown step")]
    assert frontier(["a"], [stats("a", 4, step=0), row], batch=1)[0][1] == "frontier: last group mixed at step 0 (4/8)"


def test_ties_fall_in_another_order_at_another_step_and_seed():
    names = [f"p{i}" for i in range(20)]
    orders = [[name for name, _ in frontier(names, [], 20, step, seed)] for step, seed in [(1, 0), (2, 0), (1, 1)]]
    assert orders[0] != orders[1]
    assert orders[0] != orders[2]
    assert sorted(orders[0]) == sorted(names)


def test_other_columns_pass_and_a_missing_id_is_filled_in():
    [record] = select([Record({"prompt": "?", "kind": "deep"})], step=0, batch=1, method="uniform", seed=0)
    assert record["kind"] == "deep"
    assert len(record["problem_id"]) == 20


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_larger_than_the_set_is_the_whole_set(method):
    for step in (0, 1):
        picked = select(problems("a", "b", "c"), step=step, batch=10, method=method, seed=0)
        assert sorted(record["problem_id"] for record in picked) == ["a", "b", "c"]
    assert list(select([], step=0, batch=4, method=method, seed=0)) == []


def test_a_problem_that_is_there_twice_is_refused():
    with pytest.raises(RecordError) as refused:
        list(select(problems("a", "b", "a"), step=0, batch=1, method="uniform", seed=0))
    assert str(refused.value) == (
        "f.jsonl:3: problem_id a stands at f.jsonl:1 already; run rlvr convert --drop-duplicates on it first"
    )


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="uniform, frontier, thompson, never-give-up"):
        list(select(problems("a"), step=0, batch=1, method="best", seed=0))


# --- shares of a batch -------------------------------------------------------------------------------------------

POOL = [
    *problems("p0", "p1", "p2", "p3"),
    *(Record({"problem_id": f"c{i}", "prompt": "?", "generation": 1, "operator": "drop-step"}) for i in range(4)),
]


def mixed(pool, mix, batch, method="frontier", rows=(), step=1, seed=0):
    picked = select(pool, step=step, batch=batch, method=method, seed=seed, stats=rows, mix=parse_mix(mix))
    return [(record["problem_id"], record["select_reason"]) for record in picked]


def test_a_mix_gives_each_class_its_share_and_says_which():
    rows = [stats("p0", 3, step=2), stats("c0", 5, step=3), stats("p1", 0), stats("p2", 0), stats("p3", 0, step=1)]
    rows += [stats("c1", 0), stats("c2", 0), stats("c3", 0, step=1)]
    found = mixed(POOL, "problems=0.25,drop-step=0.25,frontier=0.5", 8, rows=rows)
    assert Counter(reason for _, reason in found) == {
        "problems/frontier: last tried at step 0": 2,
        "problems/frontier: last tried at step 1": 1,  # the two slots that the frontier cannot fill go to both
        "drop-step/frontier: last tried at step 0": 2,
        "drop-step/frontier: last tried at step 1": 1,
        "frontier/frontier: last group mixed at step 2 (3/8)": 1,
        "frontier/frontier: last group mixed at step 3 (5/8)": 1,
    }
    assert [name for name, _ in mixed(POOL, "problems=0.25,drop-step=0.25,frontier=0.5", 4, rows=rows)][2:] == [
        "p0",
        "c0",
    ]


def test_before_any_synthesis_all_slots_go_to_the_problems():
    found = mixed(POOL[:4], "problems=0.2,children=0.3,frontier=0.5", 3, step=0)
    assert [reason for _, reason in found] == ["problems/frontier: untried"] * 3


def test_the_frontier_alone_is_the_measured_band():
    rows = [stats("c0", 0), stats("c1", 3), stats("c2", 8), stats("p1", 7)]
    assert sorted(name for name, _ in mixed(POOL, "frontier=1", 100000, rows=rows)) == ["c1", "p1"]


def test_the_band_holds_one_group_all_wrong_with_one_all_right():
    assert [name for name, _ in mixed(POOL, "frontier=1", 8, rows=[stats("c1", 4, groups_mixed=0)])] == ["c1"]


def test_what_there_was_to_choose_from_is_counted():
    rows = [stats("c0", 0), stats("c1", 3), stats("c2", 8), stats("p1", 7), stats("p2", 0, n=0), stats("gone", 3)]
    pool = Pool()
    shares = parse_mix("frontier=0.5,children=0.5")
    list(select(POOL, step=1, batch=1, method="frontier", seed=0, stats=rows, mix=shares, pool=pool))
    assert pool.outcomes == {"too_hard": 1, "in_band": 2, "too_easy": 1, "untried": 4}
    assert pool.classes == {"frontier": 2, "children": 3}


def test_classes_that_are_not_named_get_nothing():
    assert sorted(name for name, _ in mixed(POOL, "children=1", 8)) == ["c0", "c1", "c2", "c3"]
    assert mixed(POOL, "other-operator=1", 8) == []


def test_uniform_with_a_mix_is_an_epoch_within_each_class():
    steps = [mixed(POOL, "problems=0.5,children=0.5", 4, method="uniform", step=step) for step in range(4)]
    for first in (0, 2):
        assert sorted(name for step in steps[first : first + 2] for name, _ in step) == sorted(
            record["problem_id"] for record in POOL
        )
    assert [reason for _, reason in steps[2]] == ["problems/uniform: epoch 1"] * 2 + ["children/uniform: epoch 1"] * 2


MIXES = ["problems=0.5,children=0.5", "frontier=0.5,a=0.2,b=0.1,problems=0.2", "generation-2=0.6,children=0.4"]
KINDS = st.tuples(st.integers(0, 2), st.sampled_from([None, "a", "b"]), st.sampled_from([None, 0, 4, 8]))


@given(st.lists(KINDS, min_size=1, max_size=40), st.integers(1, 50), st.sampled_from(MIXES), st.data())
@settings(max_examples=200, deadline=None)
def test_a_mix_fills_the_batch_as_far_as_its_classes_reach(kinds, batch, mix, data):
    method = data.draw(st.sampled_from(["uniform", "frontier", "thompson"]))
    pool = [
        Record({"problem_id": f"{i:02}", "prompt": "?", "generation": generation, "operator": operator or "c"})
        for i, (generation, operator, _) in enumerate(kinds)
    ]
    rows = [stats(f"{i:02}", c) for i, (_, _, c) in enumerate(kinds) if c is not None]
    found = mixed(pool, mix, batch, method, rows)
    names = [name for name, _ in found]
    classes = classes_of(pool, parse_mix(mix), read_history(rows))
    assert len(set(names)) == len(names) == min(batch, sum(map(len, classes.values())))
    counts = Counter(reason.partition("/")[0] for _, reason in found)
    assert all(name in classes[reason.partition("/")[0]] for name, reason in found)
    if all(len(members) >= batch for members in classes.values()):
        assert all(abs(counts[name] - batch * share) < 1 for name, share in parse_mix(mix).items())
    assert found == mixed(data.draw(st.permutations(pool)), mix, batch, method, rows)
