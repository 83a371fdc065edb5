"""The verifiers that compare texts: `exact`, `text`, `regex`."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import judged, reason, verdict

from rlvr_cli.errors import RecordError
from rlvr_cli.verifiers import load_quick
from rlvr_cli.verifiers.text import bare, same


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        ("Paris", " Paris\n", "correct"),
        ("Paris ", r"I think \boxed{Paris}", "correct"),
        ("Paris", "<think>Rome?</think>Paris", "correct"),
        ("Paris", "The answer is Paris.", "correct"),
        ("Paris", "paris", "wrong"),
        ("New York", "New  York", "wrong"),
        ("Paris", r"\boxed{Paris} or \boxed{Rome}", "wrong"),
        ("Paris", "  ", "no_answer"),
        ("Paris", "<think>Paris", "no_answer"),
    ],
)
def test_exact(answer, completion, wanted):
    assert verdict("exact", answer, completion) == wanted


def test_exact_shows_a_long_answer_short():
    assert len(reason("exact", "x" * 10_000, "y")) < 300


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("paris", "PARIS!"),
        ("Paris", "**Paris**"),
        ("Paris", r"\boxed{\text{Paris}}"),
        ("Paris", "<answer>paris.</answer>"),
        ("city of light", "The City of the Light"),
        ("answer is paris", "The answer is Paris!"),  # the words that lead to an answer may belong to it
        ("It's a test", "its test"),
        ("well-known", "well known"),
        ("well-known", "wellknown"),
        ("Beyoncé", "Beyonce\u0301"),
        ("Straße", "STRASSE"),
        ("hello", "hel\u200blo"),
        ("“Hamlet”", "Hamlet"),
        ("U.S.A.", "USA"),
        ("1,000", "1000"),
        ("10–20", "10-20"),
        ("a", "a"),
        ("hello world", " hello\n world "),
    ],
)
def test_the_same_words(answer, completion):
    assert verdict("text", answer, completion) == "correct"


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("Paris", "Rome"),
        ("Paris", "Paris or London"),
        ("Paris", "Paris is nice"),
        ("Vitamin A", "vitamin"),
        ("-5", "5"),
        (".5", "5"),
        ("3.5", "35"),
        ("10-20", "1020"),
        ("5", "< 5"),
        ("50%", "50"),
        ("$5", "5"),
        ("C++", "C"),
        ("[1, 2)", "(1, 2]"),
        ("résumé", "resume"),
        ("Paris", "word " * 100_000),
    ],
)
def test_other_words(answer, completion):
    assert verdict("text", answer, completion) == "wrong"


def test_text_takes_a_list_of_texts_of_which_any_is_right():
    either = '["NYC", "New York City"]'
    assert verdict("text", either, "new york city") == "correct"
    assert verdict("text", either, "The answer is NYC.") == "correct"
    assert verdict("text", either, "NYC, New York City") == "wrong"
    assert reason("text", either, "Boston") == "expected 'NYC' or 'New York City'"
    assert verdict("text", "[1, 2]", "[1, 2]") == "correct"  # no texts: the answer itself
    for nothing in ('["", "x"]', "!!", " "):
        with pytest.raises(RecordError, match=r"r.jsonl:1: answer is .*, expected a text with a word in it"):
            verdict("text", nothing, "x")


words = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=30)


@settings(deadline=None, max_examples=300)
@given(words, words)
def test_same_is_symmetric_and_follows_from_equal_keys(one, other):
    assert same(one, one)
    assert same(one, other) == same(other, one)
    assert same(one, unicodedata.normalize("NFD", one))
    if bare(one) == bare(other):
        assert same(one, other)


@pytest.mark.parametrize(
    ("answer", "completion", "wanted"),
    [
        (r"\d{3}", "The answer is 123", "correct"),
        (r"\d{3}", "The answer is 1234", "wrong"),  # all of it has to match
        (r"(?i)yes|yep", "<think>no</think> YEP ", "correct"),
        (r"a|ab", "ab", "correct"),
        (r"a.b", "a\nb", "wrong"),
        (r"(?s)a.b", "a\nb", "correct"),
        (r".+", "", "no_answer"),
    ],
)
def test_regex(answer, completion, wanted):
    assert verdict("regex", answer, completion) == wanted


def test_regex_is_for_workers_only_since_a_text_may_make_it_backtrack():
    assert load_quick("regex") is None


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "(?P<1>x)", "x{2,1}", "(" * 5000 + ")" * 5000])
def test_a_pattern_that_does_not_compile_is_refused(pattern):
    with pytest.raises(
        RecordError, match=r"r.jsonl:1: answer is no regular expression \(.*\); see Python's re"
    ) as said:
        verdict("regex", pattern, "x")
    assert "\n" not in str(said.value)


def test_regex_says_what_it_matched():
    it = judged("regex", re.escape("a.b"), "The answer is a.b.")
    assert (it.verdict, it.extracted) == ("correct", "a.b")
