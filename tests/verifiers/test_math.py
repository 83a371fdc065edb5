"""Mathematical equality: what is equal, what is not, and what is not judged at all."""

import signal
from concurrent.futures import ThreadPoolExecutor

import math_verify
import pytest

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record
from rlvr_cli.verifiers import math as verifier
from rlvr_cli.verifiers import math_engine


def judge(answer, completion, **columns):
    return verifier.judge(Record({"answer": answer, "completion": completion, "finish_reason": "stop", **columns}))


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("42", r"\boxed{42}"),
        ("42", "The answer is 42."),
        ("42", "6 * 7 makes 42"),
        (r"\frac{1}{2}", r"\boxed{0.5}"),  # bare LaTeX is read
        (r"\$18.90", r"\boxed{18.90}"),
        (r"3\sqrt{13}", r"\boxed{\sqrt{117}}"),
        ("1/3", r"\boxed{\dfrac13}"),
        ("x^2-1", r"\boxed{(x-1)(x+1)}"),
        (r"\left(3,\frac{\pi}{2}\right)", r"\boxed{(3, \pi/2)}"),
        ("[0,1)", r"\boxed{0 \le x < 1}"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\boxed{\begin{pmatrix} 1 \\ 2 \end{pmatrix}}"),
        ("-2, 1", r"\boxed{-2} \text{ and } \boxed{1}"),
        ("5", r"<think>\boxed{4}</think> \boxed{5}"),  # boxes in the thinking do not join in
        ("-5", r"\boxed{−5}"),
        (r"2\pi", r"\boxed{2π}"),
        (r"\sqrt{5}", "The answer is √5"),
        ("12", "The answer is １２"),
        (r"\frac{1}{2}", r"\boxed{½}"),
        ("1234567", r"\boxed{1\,234\,567}"),
        ("1234567", r"\boxed{1 234 567}"),
        ("1234567", r"\boxed{1,234,567}"),
        ("1234.56", r"\boxed{1.234,56}"),
        ("5/4", r"\boxed{1 1/4}"),
        ("3000000", r"\boxed{3e6}"),
        ("1/3", r"\boxed{0.\overline{3}}"),
        ("1/6", r"\boxed{0.1\overline{6}}"),
        ("A", r"\boxed{\text{A}}"),
        ("Monday", r"\boxed{\text{monday}}"),
        (r"x = 2 \text{ or } x = 3", r"\boxed{x = 2 \text{ or } x = 3}"),
        ("Thus the sum is \\boxed{7}.", r"\boxed{7}"),  # the gold answer may be a whole solution
    ],
)
def test_equal(answer, completion):
    it = judge(answer, completion)
    assert (it.verdict, it.reward) == ("correct", 1.0), it


@pytest.mark.parametrize(
    ("answer", "completion"),
    [
        ("42", r"\boxed{41}"),
        ("42", "#### 41\nIn all, the answer was 42 for the other one"),
        ("20%", "The answer is 20%.\n#### 30%"),
        ("1728", "The answer is 1331 and 1728"),
        ("1331 and 1728", r"\boxed{1728}"),
        (r"1 - \frac{1}{\mathrm{e}}", r"\boxed{1 + \frac{1}{\mathrm{e}}}"),
        ("1, 2, \\ldots, n", r"\boxed{1, 3, \ldots, n}"),
        ("$1:3:5:\\ldots$", "$1:9:25:\\ldots$"),  # no number is lifted from a formula that is not read
        ("1e-10", r"\boxed{1e-5}"),
        ("0.00000001", r"\boxed{0.00000002}"),
        ("1/2004!", r"\boxed{1/2006!}"),
        ("2", r"\boxed{2 2/3}"),
        ("2/3", r"\boxed{2 2/3}"),
        ("1200", r"\boxed{(1,200)}"),
        ("(1,2)", r"\boxed{(2,1)}"),
        ("4", r"\boxed{3 \text{ or } 4}"),
        ("4", r"\boxed{3} or \boxed{4}"),
        ("4", r"\boxed{4\sqrt{2}}"),
        ("0", r"\boxed{\frac{1}{0}}"),
        ("2", r"\boxed{__import__('os').getpid()}"),
        ("2", "The answer is (1).__class__.__mro__[1]"),
    ],
)
def test_different(answer, completion):
    it = judge(answer, completion)
    assert (it.verdict, it.reward) == ("wrong", 0.0), it


@pytest.mark.parametrize(
    ("completion", "finish_reason", "verdict"),
    [
        (r"\boxed{41} hm \boxed{42", "stop", "no_answer"),
        (r"\boxed{42", "length", "truncated"),
        (r"<think>\boxed{42}", "stop", "no_answer"),
        (r"<think>\boxed{42}", "length", "truncated"),
        ("so 42", "length", "truncated"),
        ("", "stop", "no_answer"),
    ],
)
def test_no_answer(completion, finish_reason, verdict):
    assert judge("42", completion, finish_reason=finish_reason).verdict == verdict


def test_a_hedge_says_so():
    it = judge("4", r"\boxed{3} or \boxed{4}")
    assert it.detail["reason"] == "several answers joined by or"
    assert it.detail["boxes"] == 2


def test_a_failure_of_the_engine_is_no_wrong_answer(monkeypatch):
    def broken(*args, **settings):
        raise RuntimeError("no luck")

    monkeypatch.setattr(math_verify, "verify", broken)
    it = judge("x^2 + 2x", r"\boxed{x(x+2)}")
    assert (it.verdict, it.reward) == ("error", None)
    assert it.detail["reason"] == "RuntimeError: no luck"


def test_memory_that_runs_out_is_the_pools_business(monkeypatch):
    def hungry(*args, **settings):
        raise MemoryError

    monkeypatch.setattr(math_verify, "verify", hungry)
    with pytest.raises(MemoryError):
        judge("x^2 + 2x", r"\boxed{x(x+2)}")


def test_a_gold_answer_that_cannot_be_read_is_the_datas_fault():
    it = judge("SRAC = LRAC", r"\boxed{42}")
    assert (it.verdict, it.reward) == ("error", None)
    assert "cannot be read as mathematics" in it.detail["reason"]
    assert judge("SRAC = LRAC", r"\boxed{SRAC=LRAC}").verdict == "correct"


def test_a_gold_answer_is_parsed_once(monkeypatch):
    parsed = []
    parse = math_verify.parse
    monkeypatch.setattr(
        math_verify, "parse", lambda text, *args, **settings: parsed.append(text) or parse(text, *args, **settings)
    )
    math_engine._parsed_gold.cache_clear()
    for guess in range(3):
        judge("|y| + 7777", rf"\boxed{{|y| + {guess}}}")
    assert sum("7777" in text for text in parsed) == 1


def test_the_second_check_overrules_the_engine_and_says_so():
    it = judge(r"\left|\frac{1}{2004!}\right|", r"\boxed{\left|\frac{1}{2006!}\right|}")
    assert (it.verdict, it.detail["disagreement"]) == ("wrong", True)
    assert it.detail["reason"] == "Math-Verify calls it equal, but the numbers differ"


def test_the_second_check_agrees_with_what_is_equal_in_another_form():
    assert judge(r"\left|\sqrt{3+2\sqrt{2}}\right|", r"\boxed{\left|1+\sqrt{2}\right|}").verdict == "correct"


def test_no_signal_is_touched():
    signal.setitimer(signal.ITIMER_REAL, 3600)
    try:
        before = signal.getsignal(signal.SIGALRM)
        assert judge(r"|x| + 1", r"\boxed{1 + |x|}").verdict == "correct"
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 3000
        assert signal.getsignal(signal.SIGALRM) is before
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_it_judges_outside_the_main_thread():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(judge, "|x| + 1", r"\boxed{1 + |x|}").result().verdict == "correct"


@pytest.mark.parametrize(
    ("answer", "completion", "columns", "verdict"),
    [
        ("1/3", r"\boxed{0.33}", {}, "wrong"),
        ("1/3", r"\boxed{0.33}", {"precision": 2}, "correct"),
        ("1/3", r"\boxed{0.34}", {"precision": 2}, "wrong"),
        (r"(\frac{3}{5}, \frac{8}{3}]", r"\boxed{(0.6, 2.67]}", {"precision": 2}, "correct"),
        ("x + 1", r"\boxed{y + 1}", {}, "wrong"),
        ("x + 1", r"\boxed{y + 1}", {"strict": False}, "correct"),
        ("x + 1", r"\boxed{y + 2}", {"strict": False}, "wrong"),
    ],
)
def test_columns_that_change_the_comparison(answer, completion, columns, verdict):
    assert judge(answer, completion, **columns).verdict == verdict


@pytest.mark.parametrize(
    ("column", "value"), [("precision", -1), ("precision", True), ("precision", "2"), ("strict", 1)]
)
def test_columns_of_a_wrong_kind_are_refused(column, value):
    with pytest.raises(RecordError, match=rf"r.jsonl:7: {column} is "):
        verifier.check(Record({"answer": "1", column: value}, "r.jsonl:7"))
