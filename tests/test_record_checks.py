"""The checks of long lists are made for speed: here against what they mean."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.streams import jsonl

EDGES = [0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, -(2**63), 10**400, True, False, None, 1.0, "1", [1]]
FLOATS = [0.0, -0.0, 3.3e38, 3.4e38, -3.4e38, 3.5e38, -1e308, float("inf"), float("-inf"), float("nan"), 5e-324]


def fits(column, value):
    try:
        check_columns(Record({column: value}))
    except RecordError:
        return False
    return True


@given(st.lists(st.one_of(st.sampled_from(EDGES), st.integers(-(2**33), 2**33), st.integers(0, 2**31 - 1)), max_size=6))
def test_token_ids_are_integers_from_0_to_below_2_to_the_31(value):
    expected = all(type(item) is int and 0 <= item < 2**31 for item in value)
    assert fits("completion_token_ids", value) == expected


@given(st.lists(st.one_of(st.sampled_from(EDGES + FLOATS), st.floats(width=32), st.floats()), max_size=6))
def test_logprobs_are_numbers_that_a_32_bit_float_can_hold(value):
    expected = all(type(item) in (float, int) and -3.4e38 < item < 3.4e38 for item in value)
    assert fits("logprobs", value) == expected


@pytest.mark.parametrize("value", [None, (1, 2), {"a": 1}, "12", 1])
def test_only_a_list_is_a_list(value):
    for column in ("completion_token_ids", "logprobs"):
        assert fits(column, value) == (value is None)


@given(
    st.lists(
        st.one_of(
            st.integers(-(10**40), 10**40),
            st.from_regex(r"[0-9.:a]{0,45}", fullmatch=True),
            st.floats(-1, 1),
            st.integers(10**18 - 3, 10**18 + 3),
            st.integers(10**19 - 3, 10**19 + 3),
        ),
        max_size=5,
    )
)
def test_integers_of_any_size_are_read_wherever_they_stand(value):
    text = json.dumps({"it": value}).encode()
    assert jsonl.loads(text) == json.loads(text)
