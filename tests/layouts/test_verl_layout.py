import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.layouts.verl import problem
from rlvr_cli.records import Record

PROMPT = [{"role": "system", "content": "Box the answer."}, {"role": "user", "content": "What is 6 * 7?"}]
ROW = {
    "data_source": "math_dapo",
    "prompt": PROMPT,
    "ability": "math",
    "reward_model": {"style": "rule", "ground_truth": "42"},
    "extra_info": {"split": "train", "index": 0},
}


def test_a_row_of_verl() -> None:
    assert problem(Record(ROW)) == {
        "messages": PROMPT,
        "answer": "42",
        "verifier": "math",
        "source": "math_dapo",
        "ability": "math",
        "reward_model": {"style": "rule"},
        "extra_info": {"split": "train", "index": 0},
    }


@pytest.mark.parametrize(
    ("source", "verifier"),
    [
        ("openai/gsm8k", "gsm8k"),
        ("lighteval/MATH", "math"),
        ("DigitalLearningGmbH/MATH-lighteval", "math"),
        ("HuggingFaceH4/MATH-500", "math"),
        ("aime2024", "math"),
        ("numina_olympiads", "math"),
    ],
)
def test_the_source_names_the_verifier(source: str, verifier: str) -> None:
    made = problem(Record({**ROW, "data_source": source}))
    assert (made["source"], made["verifier"]) == (source, verifier)


def test_the_users_verifier_is_for_any_source_and_before_all() -> None:
    assert problem(Record({**ROW, "data_source": "mine"}), "exact")["verifier"] == "exact"
    assert problem(Record(ROW), "exact")["verifier"] == "exact"
    assert problem(Record({**ROW, "data_source": "mine", "verifier": "choice", "reward_model": {"ground_truth": "B"}}))


@pytest.mark.parametrize(("truth", "answer"), [(42, "42"), (42.0, "42"), (["42"], "42"), ("1/2", "1/2")])
def test_a_ground_truth_becomes_text(truth: object, answer: str) -> None:
    made = problem(Record({**ROW, "reward_model": {"ground_truth": truth}}))
    assert made["answer"] == answer
    assert "reward_model" not in made  # nothing else was in it


def test_turns_lose_the_nulls_that_parquet_fills_in() -> None:
    made = problem(Record({**ROW, "prompt": [{"role": "user", "content": "?", "tool_calls": None}]}))
    assert made["messages"] == [{"role": "user", "content": "?"}]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt": None}, "prompt is missing; a row of verl has data_source, prompt and reward_model"),
        ({"prompt": "6 * 7?"}, 'prompt is "6 \\* 7\\?", expected a list of turns'),
        ({"prompt": []}, "prompt is empty"),
        ({"prompt": [{"role": "user"}]}, r'prompt has the turn {"role":"user"}, expected role and content'),
        (
            {"prompt": [{"role": "user", "content": [1]}]},
            "prompt has the turn .*, expected role and content, both strings",
        ),
        ({"reward_model": None}, "reward_model is missing; verl keeps the answer in reward_model.ground_truth"),
        ({"reward_model": "rule"}, "reward_model is no object"),
        ({"reward_model": {"style": "model"}}, "reward_model.ground_truth is missing; leave out rows that no rule"),
        ({"reward_model": {"ground_truth": ["1", "2"]}}, r'reward_model.ground_truth is \["1","2"\], expected one'),
        ({"reward_model": {"ground_truth": {"target": ["Rome"]}}}, "reward_model.ground_truth is {.*expected a string"),
        (
            {"data_source": "codecontests"},
            "data_source is 'codecontests', for which no verifier is known; name one with",
        ),
        ({"data_source": None}, "data_source is missing; name one with --verifier"),
        ({"data_source": "openai/gsm8k", "reward_model": {"ground_truth": "many"}}, "answer is 'many', expected a num"),
        ({"images": [{"bytes": "..."}]}, "images is there, and a policy is asked in text alone"),
    ],
)
def test_what_is_no_such_row_is_told_with_its_place_and_field(changed: dict, message: str) -> None:
    row = {name: value for name, value in {**ROW, **changed}.items() if value is not None}
    with pytest.raises(RecordError, match=f"^train.parquet:3: {message}"):
        problem(Record(row, "train.parquet:3"))
