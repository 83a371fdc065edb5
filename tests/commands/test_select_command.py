"""`rlvr select` as people type it."""

import json
import subprocess
import sys

import pytest


def rlvr(*arguments):
    call = [sys.executable, "-m", "rlvr_cli", *map(str, arguments)]
    return subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def records(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps({"problem_id": name, "prompt": f"{name}?"}) + "\n" for name in "abcdef"))
    return path


@pytest.fixture
def stats(tmp_path):
    folder = tmp_path / "stats"
    folder.mkdir()
    for step, rows in enumerate([{"a": 4, "b": 0}, {"a": 8, "c": 3}]):
        text = [
            json.dumps({"problem_id": name, "n": 8, "n_correct": c, "policy_step": step}) for name, c in rows.items()
        ]
        (folder / f"{step}.jsonl").write_text("\n".join(text) + "\n")
    return folder


def test_frontier_is_the_default_and_reads_all_stats(problems, stats):
    done = rlvr("select", problems, "--stats", stats, "--step", 2, "--batch", 6)
    assert done.returncode == 0, done.stderr
    reasons = {record["problem_id"]: record["select_reason"] for record in records(done.stdout)}
    assert next(iter(reasons)) == "c"
    assert reasons["c"] == "frontier: last group mixed at step 1 (3/8)"
    assert list(reasons)[-2:] == ["b", "a"]
    assert reasons["a"] == "frontier: last tried at step 1"
    assert "6 problems for step 2: 3 untried, 2 last tried, 1 last group mixed" in done.stderr


def test_stats_may_be_repeated(problems, stats):
    shown = [stats / "0.jsonl", "--stats", stats / "1.jsonl"]
    repeated = rlvr("select", problems, "--stats", *shown, "--step", 2, "--batch", 3)
    folder = rlvr("select", problems, "--stats", stats, "--step", 2, "--batch", 3)
    assert repeated.stdout == folder.stdout


def test_uniform_steps_make_up_an_epoch(problems, tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    picked = []
    for step in (0, 1):
        call = ["select", problems, "--method", "uniform", "--step", step, "--batch", 3, "--seed", 7]
        picked += records(rlvr(*call, "--metrics", metrics).stdout)
    assert sorted(record["problem_id"] for record in picked) == list("abcdef")
    assert {record["select_reason"] for record in picked} == {"uniform: epoch 0"}
    assert [line["selected"] for line in records(metrics.read_text())] == [3, 3]


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (["--step", "3", "--batch", "2"], "no --stats at step 3: every problem counts as untried"),
        (["--batch", "100"], "--batch is 100 and there are 6 problems: all of them are chosen"),
    ],
)
def test_what_may_be_a_mistake_is_said(problems, options, warning):
    done = rlvr("select", problems, *options)
    assert done.returncode == 0
    assert f"warning: {warning}" in done.stderr


def test_uniform_says_that_it_does_not_look_at_stats(problems, stats):
    done = rlvr("select", problems, "--method", "uniform", "--stats", stats, "--batch", 2)
    assert "warning: --method uniform does not look at --stats" in done.stderr


def test_duplicates_are_refused_with_the_remedy(problems):
    problems.write_text(problems.read_text() + '{"problem_id": "b", "prompt": "b?"}\n')
    done = rlvr("select", problems)
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{problems}:7: problem_id b stands at {problems}:2 already; run rlvr convert --drop-dup" in done.stderr


def test_scored_records_are_no_statistics(problems, tmp_path):
    path = tmp_path / "scored.jsonl"
    path.write_text('{"problem_id": "a", "reward": 1.0}\n')
    done = rlvr("select", problems, "--stats", path)
    assert done.returncode == 1
    assert f"{path}:1: n is missing; give the output of rlvr bucketize" in done.stderr


@pytest.mark.parametrize("options", [["--step", "-1"], ["--batch", "0"], ["--method", "best"]])
def test_wrong_usage(problems, options):
    assert rlvr("select", problems, *options).returncode == 2


def test_rows_of_statistics_are_no_problems(tmp_path):
    rows = tmp_path / "stats.jsonl"
    rows.write_text(json.dumps({"problem_id": "a", "prompt": "a?", "n": 8, "n_correct": 3}) + "\n")
    done = rlvr("select", rows)
    assert done.returncode == 1
    assert (
        done.stderr == f"rlvr select: {rows}:1: is a row of statistics; give it as --stats, and the problems as input\n"
    )


# --- thompson, never-give-up, mix ---------------------------------------------------------------------------------


@pytest.fixture
def pool(tmp_path):
    """Six problems with four children, and what was measured of them at steps 0 and 1."""
    path = tmp_path / "pool.jsonl"
    rows = [{"problem_id": name, "prompt": f"{name}?"} for name in "abcdef"]
    rows += [
        {"problem_id": f"a{i}", "prompt": "?", "parent_id": "a", "generation": 1, "operator": "drop-step"}
        for i in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    measured = [("a", 0, 0), ("b", 0, 0), ("c", 3, 0), ("d", 8, 0), ("a0", 8, 1), ("a1", 6, 1)]
    (tmp_path / "measured.jsonl").write_text(
        "".join(
            json.dumps({"problem_id": name, "n": 8, "n_correct": c, "groups_mixed": int(0 < c < 8), "policy_step": at})
            + "\n"
            for name, c, at in measured
        )
    )
    return path


def test_never_give_up_from_the_command_line(pool, tmp_path):
    call = ["select", pool, "--stats", tmp_path / "measured.jsonl", "--method", "never-give-up", "--step", 2]
    done = rlvr(*call, "--batch", 8)
    assert done.returncode == 0, done.stderr
    reasons = {record["problem_id"]: record["select_reason"] for record in records(done.stdout)}
    assert list(reasons)[:3] == ["a", "b", "c"]
    assert reasons["a"] == "never-give-up: children mastered (all 2 measured), unsolved at step 0 (0/8 in all)"
    assert not {"d", "a0"} & set(reasons)
    assert done.stderr == (
        "rlvr select: 8 problems for step 2: 4 untried, 2 last group mixed, 1 children mastered, 1 unsolved\n"
    )
    assert "d" in rlvr(*call, "--batch", 8, "--rest", 1, "--unsolved-cap", 0).stdout
    stricter = rlvr(*call, "--batch", 4, "--mastery", 0.9).stdout
    assert '"never-give-up: unsolved at step 0' in stricter
    assert "children mastered" not in stricter


def test_a_batch_that_the_cap_leaves_short_is_said_in_one_line(tmp_path):
    pool, rows = tmp_path / "pool.jsonl", tmp_path / "stats.jsonl"
    pool.write_text("".join(json.dumps({"problem_id": f"{i}", "prompt": "?"}) + "\n" for i in range(12)))
    rows.write_text("".join(json.dumps({"problem_id": f"{i}", "n": 8, "n_correct": 0}) + "\n" for i in range(12)))
    done = rlvr("select", pool, "--stats", rows, "--method", "never-give-up", "--batch", 8)
    assert done.stderr == (
        "rlvr select: --batch is 8, and --unsolved-cap leaves 2 problems (at most 2 unsolved): all are chosen\n"
        "rlvr select: 2 problems for step 0: 2 unsolved\n"
    )


def test_thompson_from_the_command_line(pool, tmp_path):
    call = ["select", pool, "--stats", tmp_path / "measured.jsonl", "--method", "thompson", "--step", 4, "--batch", 5]
    done = rlvr(*call)
    assert done.returncode == 0, done.stderr
    assert len(records(done.stdout)) == 5
    assert rlvr(*call).stdout == done.stdout
    assert rlvr(*call, "--seed", 1).stdout != done.stdout
    [stale] = [
        record for record in records(rlvr(*call, "--batch", 10, "--half-life", 4).stdout) if record["problem_id"] == "b"
    ]
    assert stale["select_reason"].endswith("from Beta(1, 5)")  # 8 failures four steps ago
    kinds = done.stderr.partition(": ")[2].partition(": ")[2]
    assert "drew" not in kinds and "untried" in kinds


def test_a_mix_is_told_by_class(pool, tmp_path):
    metrics = tmp_path / "metrics.jsonl"
    done = rlvr(
        *("select", pool, "--stats", tmp_path / "measured.jsonl", "--step", 2, "--batch", 5),
        *("--mix", "problems=0.4,children=0.4,frontier=0.2", "--metrics", metrics),
    )
    assert done.stderr == (
        "rlvr select: of all: 2 too hard, 2 in band, 2 too easy, 4 untried\n"
        "rlvr select: 5 problems for step 2: 3 untried, 1 children mastered, 1 last group mixed; "
        "problems 2 of 5, children 2 of 3, frontier 1 of 2\n"
    )
    [line] = records(metrics.read_text())
    assert line["classes"] == {"problems": 2, "children": 2, "frontier": 1}
    assert line["class_sizes"] == {"problems": 5, "children": 3, "frontier": 2}
    assert line["outcomes"] == {"too_hard": 2, "in_band": 2, "too_easy": 2, "untried": 4}
    assert {record["select_reason"].partition("/")[0] for record in records(done.stdout)} == set(line["classes"])


def test_the_measured_band_as_a_command(pool, tmp_path):
    done = rlvr("select", pool, "--stats", tmp_path / "measured.jsonl", "--mix", "frontier=1", "--batch", 100000)
    assert sorted(record["problem_id"] for record in records(done.stdout)) == ["a1", "c"]
    assert done.stderr == (
        "rlvr select: --batch is 100000, and the classes of --mix have 2 problems: all are chosen\n"
        "rlvr select: of all: 2 too hard, 2 in band, 2 too easy, 4 untried\n"
        "rlvr select: 2 problems for step 0: 2 last group mixed; frontier 2 of 2\n"
    )
    cut = rlvr("select", pool, "--stats", tmp_path / "measured.jsonl", "--mix", "frontier=1", "--batch", 1)
    assert cut.stderr.endswith("; frontier 1 of 2\n")
    none = rlvr("select", pool, "--mix", "frontier=1")
    assert (none.returncode, none.stdout) == (0, "")
    assert "no problem is in a class of --mix (frontier)" in none.stderr


def test_a_mix_before_any_synthesis_makes_no_noise(problems):
    done = rlvr("select", problems, "--batch", 4, "--mix", "problems=0.2,drop-step=0.3,frontier=0.5")
    assert done.stderr == (
        "rlvr select: of all: 0 too hard, 0 in band, 0 too easy, 6 untried\n"
        "rlvr select: 4 problems for step 0: 4 untried; problems 4 of 6, drop-step 0 of 0, frontier 0 of 0\n"
    )


@pytest.mark.parametrize("step", [0, 3])
def test_a_misspelled_class_is_warned_of_before_any_synthesis(problems, stats, step):
    done = rlvr("select", problems, "--stats", stats, "--step", step, "--batch", 4, "--mix", "fronteir=.5,problems=.5")
    assert (
        "warning: --mix names fronteir, and no problem has that operator; "
        "there are only frontier, generation-N, children and problems\n"
    ) in done.stderr
    assert "of all" not in done.stderr  # the band is counted where frontier is named


def test_an_operator_that_made_nothing_is_warned_of(pool):
    done = rlvr("select", pool, "--batch", 4, "--mix", "problems=0.5,drop-steps=0.5")
    assert "warning: --mix names drop-steps, and no problem has that operator; there are drop-step\n" in done.stderr


def test_uniform_looks_at_stats_only_for_the_frontier_of_a_mix(pool, tmp_path):
    call = ["select", pool, "--stats", tmp_path / "measured.jsonl", "--method", "uniform", "--batch", 4, "--mix"]
    told = rlvr(*call, "frontier=0.5,problems=0.5")
    assert "warning" not in told.stderr
    assert [r["select_reason"].partition("/")[0] for r in records(told.stdout)] == ["frontier"] * 2 + ["problems"] * 2
    assert "does not look at --stats" in rlvr(*call, "children=0.5,problems=0.5").stderr


@pytest.mark.parametrize("method", ["thompson", "never-give-up"])
def test_a_forgotten_step_is_asked_about(pool, tmp_path, method):
    done = rlvr("select", pool, "--stats", tmp_path / "measured.jsonl", "--method", method, "--batch", 4)
    assert "warning: --stats go up to step 1 and --step is 0: is --step right?" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--half-life", "4"], "--half-life is of no use with --method frontier; it belongs to thompson"),
        (["--method", "thompson", "--unsolved-cap", "0.5"], "--unsolved-cap is of no use with --method thompson"),
        (["--method", "thompson", "--rest", "5"], "--rest is of no use with --method thompson"),
        (["--method", "uniform", "--mastery", "0.5"], "--mastery is of no use with --method uniform"),
        (["--method", "thompson", "--half-life", "0"], "--half-life is 0, expected a number above 0"),
        (["--method", "thompson", "--half-life", "nan"], "--half-life is nan"),
        (["--method", "never-give-up", "--unsolved-cap", "1.5"], "--unsolved-cap is 1.5, expected a share"),
        (["--method", "never-give-up", "--rest", "-1"], "--rest is -1, expected 0 or more steps"),
        (["--mastery", "0"], "--mastery is 0, expected a pass rate"),
        (["--mix", "problems=0.5"], "the shares of --mix sum to 0.5, expected 1"),
        (["--mix", ""], "--mix has ''"),
    ],
)
def test_options_that_do_not_fit_are_one_line(problems, options, said):
    done = rlvr("select", problems, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rlvr select: {said}")
    assert done.stderr.count("\n") == 1


def test_what_bucketize_writes_is_what_select_reads(problems, tmp_path):
    scored, stats = tmp_path / "scored.jsonl", tmp_path / "stats.jsonl"
    rewards = {"a": [0, 1, 0, 0], "b": [0, 0, 0, 0], "c": [1, 1, 1, 1]}
    scored.write_text(
        "".join(
            json.dumps({"problem_id": name, "prompt": "?", "policy_id": "w", "policy_step": 3, "group_id": name})[:-1]
            + f', "sample_index": {i}, "reward": {reward}}}\n'
            for name, group in rewards.items()
            for i, reward in enumerate(group)
        )
    )
    assert rlvr("bucketize", scored, "-o", stats).returncode == 0
    done = rlvr("select", problems, "--stats", stats, "--step", 4, "--batch", 5, "--method", "never-give-up")
    assert [record["select_reason"] for record in records(done.stdout)] == [
        "never-give-up: unsolved at step 3 (0/4 in all)",
        "never-give-up: last group mixed at step 3 (1/4)",
        *["never-give-up: untried"] * 3,
    ]


@pytest.mark.parametrize("option", ["-o", "--rejects", "--metrics"])
def test_a_side_input_is_never_written_over(problems, tmp_path, option):
    side = tmp_path / "stats.jsonl"
    side.write_text(json.dumps({"problem_id": "a", "n": 8, "n_correct": 4, "policy_step": 0}) + "\n")
    before = side.read_bytes()
    skip = ["--on-error", "skip"] if option == "--rejects" else []
    done = rlvr("select", problems, "--stats", tmp_path / "*.jsonl", *skip, option, side)
    assert done.returncode == 2
    assert f"{side} is read as --stats; name another one" in done.stderr
    assert side.read_bytes() == before


def test_a_problem_without_an_id_of_its_own_is_no_parent(problems, tmp_path):
    (tmp_path / "stats").mkdir()
    rows = [{"problem_id": "", "n": 8, "n_correct": 0}, {"problem_id": "a", "n": 8, "n_correct": 8}]
    (tmp_path / "stats" / "0.jsonl").write_text("".join(json.dumps({**row, "policy_step": 0}) + "\n" for row in rows))
    done = rlvr("select", problems, "--stats", tmp_path / "stats", "--step", 1, "--batch", 6)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [("--seed", 10**30), ("--batch", -(10**30)), ("--shard", f"0/{'9' * 5000}")])
def test_numbers_beyond_64_bits_are_refused(problems, arguments):
    done = rlvr("select", problems, *arguments)
    assert done.returncode == 2
    assert "unexpected" not in done.stderr


def test_a_deeply_nested_column_can_be_set_aside(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"prompt": ' + "[" * 250 + "]" * 250 + "}\n" + '{"prompt": "1 + 1 ="}\n')
    done = rlvr("select", path, "--on-error", "skip")
    assert done.returncode == 0, done.stderr
    assert len(records(done.stdout)) == 1
