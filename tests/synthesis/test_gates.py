"""What each gate turns away, and what it lets pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr_cli.records import Record
from rlvr_cli.synthesis.gates import NGRAM, SHINGLE, Gates, Index, grams, wording, words
from rlvr_cli.tiny.chains import parse_prompt, render_derivation, solve

PROSE = (
    "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. "
    "How many clips did Natalia sell altogether in April and May? Give the number alone, without any words."
)
PROBLEM = "Start 2 9 . A: - 4 . B: flip . C: double . =>"
ANSWER = "0 4"


def prose(text, answer):
    """A problem in prose: the verifier accepts its answer as the completion."""
    return Record({"prompt": text, "answer": answer, "verifier": "exact"})


def chain(text, answer=None):
    found = parse_prompt(text)
    right = render_derivation(found, solve(found))
    answer = right[-1].removeprefix("Answer ") if answer is None else answer
    return Record({"prompt": text, "answer": answer, "verifier": "chain"}), " ".join(right)


def refusal(gates, text, answer="72"):
    return gates.refusal(prose(text, answer), answer)


def gates_knowing(*records, **settings):
    gates = Gates(**settings)
    for record in records:
        gates.know(record)
    return gates


def gates_avoiding(*records, **settings):
    gates = Gates(**settings)
    for record in records:
        gates.avoid(record)
    return gates


def test_a_problem_whose_own_verifier_disagrees_is_ill_posed():
    record, solution = chain(PROBLEM)
    assert record["answer"] == ANSWER
    assert Gates().refusal(record, solution) is None
    assert Gates().refusal(record, solution.replace("= 2 5", "= 2 6")) == "ill_posed"
    assert Gates().refusal(chain(PROBLEM, answer="0 5")[0], solution) == "ill_posed"
    assert Gates().refusal(record.extended(prompt="Start 2 9 . A: halve . =>"), solution) == "ill_posed"


def test_a_long_problem_is_turned_away():
    assert refusal(Gates(max_words=6), "one two three four five six") is None
    assert refusal(Gates(max_words=5), "one two three four five six") == "too_long"


@pytest.mark.parametrize(
    "spelling",
    [PROSE, PROSE.upper(), PROSE.replace(" ", "  \n"), PROSE.replace(",", "").rstrip("."), PROSE.replace("4", "４")],
    ids=["same", "case", "white space", "punctuation", "full width"],
)
def test_the_same_words_are_a_copy_whatever_the_answer(spelling):
    assert refusal(gates_knowing(prose(PROSE, "72")), spelling, answer="7") == "copy"


def test_a_reworded_problem_with_the_same_answer_is_a_near_copy():
    gates = gates_knowing(prose(PROSE, "72"))
    assert refusal(gates, PROSE.replace("altogether", "overall")) == "near_copy"
    assert refusal(gates, PROSE.replace("sold half", "sold exactly half")) == "near_copy"
    assert refusal(gates, "Tell me. " + PROSE) == "near_copy"
    assert refusal(gates_knowing(prose(PROSE, "72"), near=1.0), PROSE.replace("altogether", "overall")) is None


def test_other_numbers_with_another_answer_are_another_problem():
    gates = gates_knowing(prose(PROSE, "72"))
    assert refusal(gates, PROSE.replace("48", "60"), answer="90") is None


def test_the_same_answer_alone_is_no_copy():
    assert refusal(gates_knowing(prose(PROSE, "72")), "What is 8 times 9, if 8 times 8 is 64?") is None


def test_steps_that_undo_one_another_make_a_near_copy():
    long = "Start 2 9 . A: - 4 . B: + 6 . C: + 7 . D: + 2 . E: - 1 . F: - 2 . G: + 3 . H: + 9 . I: flip . J: flip . =>"
    short = long.replace(" I: flip . J: flip .", "")
    assert gates_knowing(chain(long)[0]).refusal(*chain(short)) == "near_copy"
    assert gates_knowing(chain(long)[0]).refusal(*chain(short.replace("H: + 9", "H: + 8"))) is None


def test_a_problem_of_the_evaluation_set_is_turned_away_however_it_is_spelled():
    gates = gates_avoiding(prose("What is 3 plus 5?", "8"), chain(PROBLEM)[0], overlap=1.0)
    assert refusal(gates, "what is 3 plus 5", answer="9") == "evaluation"
    assert gates.refusal(*chain(PROBLEM.replace(" ", "  "))) == "evaluation"


def test_the_same_chain_is_the_same_problem_as_prompt_and_as_messages():
    record, solution = chain(PROBLEM)
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": PROBLEM}]
    chat = Record({"messages": turns, "answer": record["answer"], "verifier": "chain"})
    assert gates_avoiding(chat).refusal(record, solution) == "evaluation"
    assert gates_knowing(record).refusal(chat, solution) == "copy"
    example = [
        {"role": "user", "content": "Start 0 1 . A: + 1 . =>"},
        {"role": "assistant", "content": "A: + 1 on 0 1 = 0 2 . Answer 0 2"},
    ]
    assert gates_knowing(record).refusal(chat.extended(messages=[*example, *turns]), solution) == "copy"


def test_the_system_turn_is_no_part_of_a_problem():
    def chat(system):
        return Record({"messages": [{"role": "system", "content": system}, {"role": "user", "content": PROSE}]})

    assert wording(chat("Be brief.")) == wording(chat("Reason.")) == words(PROSE)


def test_a_brief_problem_of_the_evaluation_set_is_found_within_a_longer_one():
    gates = gates_avoiding(prose("What is 3 plus 5?", "8"), overlap=1.0)
    assert refusal(gates, "Here is a puzzle for you. What is 3 plus 5? Answer alone.", answer="8") == "evaluation"
    assert refusal(gates, "Here is a puzzle for you. What is 3 plus 4? Answer alone.", answer="7") is None
    assert refusal(gates, "3 plus 5") is None  # a part of it is no problem of the set
    assert refusal(gates_avoiding(prose("?", "8")), "What is 3 plus 5?", answer="8") is None  # no words, no problem


@pytest.mark.parametrize(
    "text",
    [
        "Here is a puzzle for you. " + PROSE,
        PROSE.partition(". ")[0],  # within the problem of the evaluation set
        PROSE.replace("Natalia", "Weng"),
    ],
    ids=["embedded", "a part", "a name changed"],
)
def test_most_8_grams_in_common_are_an_overlap(text):
    gates = gates_avoiding(prose(PROSE, "72"))
    assert refusal(gates, text, answer="1") == "evaluation"
    assert refusal(Gates(), text, answer="1") is None


def test_one_8_gram_is_an_overlap_at_0_only():
    text = "In spring Natalia sold clips to 48 of her friends, who asked for twelve more: what did they pay for these?"
    shared = grams(words(text), NGRAM) & grams(words(PROSE), NGRAM)
    assert len(shared) == 1
    assert refusal(gates_avoiding(prose(PROSE, "72"), overlap=0.0), text) == "evaluation"
    assert refusal(gates_avoiding(prose(PROSE, "72")), text) is None
    assert refusal(gates_avoiding(prose(PROSE, "72"), overlap=0.0), "What is 8 times 9, if 8 times 8 is 64?") is None


def test_chains_that_share_three_steps_by_chance_do_not_overlap():
    other = "Start 5 5 . A: flip . B: + 6 . C: - 4 . D: + 2 . E: nines . F: + 1 . =>"
    text = "Start 7 1 . A: nines . B: + 6 . C: - 4 . D: + 2 . E: flip . F: - 8 . =>"
    assert gates_avoiding(chain(other)[0], overlap=0.0).refusal(*chain(text)) == "evaluation"
    assert gates_avoiding(chain(other)[0]).refusal(*chain(text)) is None


TEXTS = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)


@given(st.lists(TEXTS, max_size=6), TEXTS, st.integers(1, 10))
def test_near_is_exactly_jaccard_of_the_3_word_shingles(known, text, tenths):
    def jaccard(one, other):
        return len(one & other) / len(one | other)

    found = grams(words(text), SHINGLE)
    exact = [jaccard(found, grams(words(other), SHINGLE)) for other in known]
    gates = gates_knowing(*(prose(other, "1") for other in known), near=tenths / 10)
    got = refusal(gates, text, answer="1")
    if words(text) in {words(other) for other in known}:
        assert got == "copy"
    else:
        assert got == ("near_copy" if any(value >= tenths / 10 for value in exact) else None)


@given(st.lists(TEXTS, max_size=6), TEXTS)
def test_the_index_counts_what_sets_share(texts, text):
    index = Index()
    for other in texts:
        index.add(grams(words(other), 2))
    found = grams(words(text), 2)
    sets = [grams(words(other), 2) for other in texts]
    assert sorted(index.shared(found)) == sorted((len(s), len(s & found)) for s in sets if s & found)


def test_grams_of_a_short_text_are_the_text():
    assert grams("abc", 2) == {("a", "b"), ("b", "c")}
    assert grams("ab", 2) == {("a", "b")}
    assert grams("a", 2) == {("a",)}
    assert grams("", 2) == {()}


def test_words_keep_what_tells_problems_apart():
    assert words("What is 5! + 3.5?") == ("what", "is", "5!", "+", "3.5")
    assert words("What is .5 + 1?") != words("What is 5 + 1?")
    assert words('He said: ".5, of course."') == ("he", "said", ".5", "of", "course")
    assert words(PROBLEM) == ("start", *"29", "a", "-", "4", "b", "flip", "c", "double", "=>")
