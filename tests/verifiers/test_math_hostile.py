"""What a policy may write against the judge: code, and texts that are long, deep or heavy."""

import time

import pytest

from rlvr_cli.verifiers import boxed, gsm8k, readings
from rlvr_cli.verifiers import math as verifier

CONTEXTS = [
    "{}",
    "${}$",
    "$${}$$",
    r"\[{}\]",
    r"\({}\)",
    r"\boxed{{{}}}",
    r"\boxed{{\text{{{}}}}}",
    r"\boxed{{$ {} $}}",
    r"\boxed{{\operatorname{{{}}}}}",
    r"\boxed{{\mathrm{{{}}}}}",
    r"\boxed{{\frac{{{}}}{{1}}}}",
    r"\boxed{{\sqrt{{{}}}}}",
    r"\boxed{{({}, 2)}}",
    r"\boxed{{[{}, 2]}}",
    r"\boxed{{\{{{}\}}}}",
    r"\boxed{{2 + {}}}",
    r"\boxed{{2^{{{}}}}}",
    r"\boxed{{x = {}}}",
    r"\boxed{{\begin{{pmatrix}} {} \\ 2 \end{{pmatrix}}}}",
    r"\boxed{{{}\%}}",
    r"\boxed{{2 \text{{ {} }}}}",
    r"\boxed{{f({})}}",
    r"\boxed{{\log({})}}",
    r"\boxed{{|{}|}}",
    r"\boxed{{{}!}}",
    r"\boxed{{2_{{{}}}}}",
    "The answer is {}.",
    "The final answer is ${}$. I hope it is correct.",
    "#### {}",
    "<answer>{}</answer>",
    "answer: 2*({})",
    "2 + {}",
    "(2) * ({})",
    "1/{}",
    r"\frac{{1}}{{2}} {}",
    "`{}`",
    "**{}**",
    "2; {}",
    "2\n{}",
    "1 if {} else 2",
]


def payloads(path):
    return [
        f"__import__('os').system('touch {path}')",
        f'__import__("pathlib").Path("{path}").touch()',
        f"open('{path}','w')",
        f"(lambda: open('{path}', 'w'))()",
        f"exec(\"open('{path}','w')\")",
        f"[c for c in ().__class__.__base__.__subclasses__()][0].__init__.__globals__['open']('{path}','w')",
        rf"\_\_import\_\_('os').system('touch {path}')",
        f"\\immediate\\write18{{touch {path}}}",
        f"Symbol('x', cls=open('{path}','w'))",
    ]


@pytest.mark.parametrize("context", CONTEXTS)
def test_no_text_is_evaluated(context, tmp_path):
    path = tmp_path / "touched"
    for payload in payloads(path):
        record = {"answer": "7", "completion": context.format(payload), "finish_reason": "stop"}
        for judge in (verifier.quick, verifier.judge, gsm8k.judge, boxed.judge):
            it = judge(record)
            assert it is None or it.verdict in ("wrong", "no_answer"), (payload, it)
        assert list(tmp_path.iterdir()) == [], payload


@pytest.mark.parametrize("payload", payloads("touched"))
def test_a_gold_answer_is_not_evaluated_either(payload, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert verifier.judge({"answer": payload, "completion": r"\boxed{7}"}).verdict in ("wrong", "error")
    assert list(tmp_path.iterdir()) == []


FRAGMENTS = [
    "{",
    "}",
    "(",
    ")",
    "[",
    r"\{",
    "\\",
    "$",
    "$$",
    r"\[",
    r"\(",
    "1",
    "1,",
    "1 ",
    "1/",
    "1.",
    "1^",
    "1_",
    "1!",
    "-",
    "+ -",
    r"\boxed{",
    r"\boxed{1}",
    r"\boxed{1} or ",
    r"\boxed",
    r"\frac{",
    r"\frac12",
    r"\sqrt{",
    r"\text{a} ",
    r"\mathrm{m}^2 ",
    "cm ",
    "cm^2 ",
    "abc ",
    "answer ",
    "the answer is ",
    "final answer: ",
    "#### 1\n",
    "<answer>",
    "<think></think>",
    " ",
    "\n",
    "\t",
    "π",
    "½",
    "²",
    "１",
    "−",
    "°",
    r"^\circ ",
    r"\% ",
    "percent ",
    ", ",
    r"\!",
    r"\; ",
    "or ",
    "1 and ",
    "x=",
    "x<1 or ",
    r"\pm ",
    "May 5 ",
    r"0.\overline{",
    r"0.3\dot{3}",
    "0.333...",
    r"\cup",
    "(1,2)",
    "for all ",
    "where ",
    "~",
    "€",
    "$1 ",
    "|",
    "\x00",
    "\u202e",
    "\u0130",
    "million ",
    "1_8 ",
    r"\begin{pmatrix}",
    r"1&2\\",
    "9^",
    "1 1/2 ",
    "**",
    "...",
    "答案",
]


@pytest.mark.parametrize("size", [1_900, 100_000])
@pytest.mark.parametrize("frame", ["{}", r"\boxed{{{}}}", "The answer is {}", r"x \boxed{{7}} {}", r"\boxed{{7{}7}}"])
def test_a_quick_verdict_of_a_hostile_text_is_quick(frame, size):
    for fragment in FRAGMENTS:
        text = frame.format(fragment * (size // len(fragment)))
        begun = time.process_time()
        it = verifier.quick({"answer": r"\frac{1}{3}", "completion": text})
        assert it is None or it.verdict in ("wrong", "no_answer")
        assert time.process_time() - begun < 1, fragment  # hardly any takes a tenth of that


def test_a_million_braces():
    for text in ("{" * 1_000_000, r"\boxed{" * 140_000, r"\boxed{" + "{" * 500_000 + "}" * 500_000 + "}"):
        begun = time.process_time()
        it = verifier.quick({"answer": "7", "completion": text})
        assert it is None or it.verdict in ("wrong", "no_answer")
        assert time.process_time() - begun < 5


HEAVY = [
    "9^{9^{9^{9}}}",
    "10000000!",
    "((9!)!)!",
    "2^{10^9}",
    r"\binom{10000000}{5000000}",
    "(" * 900 + "1" + ")" * 900 + "+1",
    r"\sqrt{" * 400 + "2" + "}" * 400,
    "1+" * 3000 + "1",
    r"\frac{3^{(3^{(3^{(3^3)})} - 4)} - 3}{16}",
    "1" * 1900,
    r"\frac{" * 300,
    "{" * 50_000 + "}" * 50_000,
    "9**9**9**9",
]


@pytest.mark.parametrize("box", HEAVY, ids=range(len(HEAVY)))
def test_a_heavy_number_is_judged_without_computing_it(box):
    begun = time.monotonic()
    assert verifier.judge({"answer": "7", "completion": rf"\boxed{{{box}}}"}).verdict in ("wrong", "no_answer")
    assert time.monotonic() - begun < 5


def test_long_answers_are_not_kept_in_memory():
    readings._reading.cache_clear()
    for number in range(5):
        verifier.quick({"answer": "7", "completion": rf"\boxed{{{number} {'x' * 5000}}}"})
    assert readings._reading.cache_info().currsize <= 1  # the answer of the record


def test_what_is_extracted_is_short():
    for completion in (r"\boxed{" + "9" * 50_000 + "}", r"\boxed{" + "x" * 50_000 + r"} or \boxed{7}"):
        assert len(verifier.judge({"answer": "7", "completion": completion}).extracted) <= 2000
