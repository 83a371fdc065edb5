"""The stage `verify`: rollouts in, scored rollouts out."""

import subprocess
import sys

import pytest

from rlvr_cli.errors import RecordError, UsageError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.stages.verify import check_rollout_to_judge, verify


def rollout(**columns):
    return Record(
        {"prompt": "6 * 7?", "answer": "42", "verifier": "gsm8k", "completion": "#### 42", **columns}, "r.jsonl:5"
    )


def one(record, verifier=None):
    (scored,) = verify([record], verifier)
    return scored


def test_a_scored_record_is_the_record_and_its_judgement():
    record = rollout(colour="blue")
    scored = one(record)
    judged = {key: scored[key] for key in scored if key not in record}
    assert {key: scored[key] for key in record} == record
    assert scored.where == "r.jsonl:5"
    assert (judged["verdict"], judged["reward"], judged["extracted"]) == ("correct", 1.0, "42")
    assert judged["verifier_detail"]["verifier"] == "gsm8k"
    assert judged["verifier_detail"]["version"].startswith("rlvr ")
    check_columns(scored)


def test_an_earlier_judgement_goes():
    stale = {"verdict": "correct", "reward": 1.0, "extracted": "41", "verifier_detail": {"old": True}}
    scored = one(rollout(completion="", **stale))
    assert (scored["verdict"], scored["reward"]) == ("no_answer", 0.0)
    assert "extracted" not in scored
    assert "old" not in scored["verifier_detail"]


def test_the_argument_overrides_and_the_column_stays():
    scored = one(rollout(completion=r"\boxed{Paris}", answer="Paris"), "exact")
    assert (scored["verdict"], scored["verifier"]) == ("correct", "gsm8k")
    assert scored["verifier_detail"]["verifier"] == "exact"


def test_records_come_one_by_one_in_order():
    records = iter([rollout(completion=f"#### {number}") for number in (41, 42, 43)])
    stream = verify(records)
    assert next(stream)["extracted"] == "41"
    assert next(records)["completion"] == "#### 42"  # nothing was read ahead
    assert [scored["extracted"] for scored in stream] == ["43"]


def test_a_rollout_that_the_engine_failed_has_no_reward():
    record = rollout(finish_reason="error")
    del record["completion"]
    check_rollout_to_judge(record)
    scored = one(record)
    assert scored["verdict"] == "error"
    assert "reward" not in scored
    assert scored["verifier_detail"]["reason"] == "the engine gave no completion"


def test_an_exception_in_a_verifier_is_an_error_and_no_zero(monkeypatch):
    import rlvr_cli.verifiers.gsm8k as gsm8k
    from rlvr_cli.stages import verify as stage

    def broken(record):
        raise KeyError("gone")

    stage._load.cache_clear()
    monkeypatch.setattr(gsm8k, "judge", broken)
    scored = one(rollout())
    stage._load.cache_clear()
    assert scored["verdict"] == "error"
    assert "reward" not in scored
    assert "KeyError" in scored["verifier_detail"]["reason"]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"completion": None}, "completion is missing; run rlvr rollout on it first"),
        ({"completion": 42}, "completion is 42, expected a string; run rlvr rollout on it first"),
        ({"verifier": None}, r"verifier is missing; name one with --verifier"),
        ({"verifier": "maths"}, r"verifier: no verifier 'maths'; there are chain"),
        ({"verifier": "os:getcwd"}, "your own code is named by --verifier os:getcwd only"),
        ({"answer": None}, "answer is missing"),
        ({"answer": 42}, "answer is 42, expected a string"),
        ({"finish_reason": "tired"}, 'finish_reason is "tired", expected one of stop, length, error'),
    ],
)
def test_what_cannot_be_judged_is_refused_with_its_place(columns, says):
    record = Record({key: value for key, value in rollout(**columns).items() if value is not None}, "r.jsonl:5")
    with pytest.raises(RecordError, match=f"r.jsonl:5: .*{says}"):
        check_rollout_to_judge(record)


def test_a_record_does_not_choose_which_code_runs():
    with pytest.raises(RecordError, match="your own code"):
        one(rollout(verifier="os:getcwd"))


def test_a_stale_judgement_of_the_wrong_type_is_no_fault():
    check_rollout_to_judge(rollout(reward="yes", verdict="fine"))


def test_an_override_is_checked_in_its_place():
    check_rollout_to_judge(rollout(verifier="maths"), "exact")
    with pytest.raises(UsageError):
        check_rollout_to_judge(rollout(), "maths")


def test_nothing_heavy_is_imported_for_a_light_verifier():
    code = (
        "import sys; from rlvr_cli.records import Record; from rlvr_cli.stages.verify import verify;"
        "list(verify([Record({'completion': 'x', 'answer': 'x', 'verifier': 'exact'})]));"
        "print([m for m in ('torch', 'numpy', 'sympy', 'math_verify', 'pyarrow', 'typer') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
