"""One table of right and wrong answers for each kind of trap that a judge of mathematics meets."""

import pytest

from rlvr_cli.records import Record
from rlvr_cli.verifiers import math as verifier

# kind: (answer, what is in the box) of those that are right, and of those that are wrong
KINDS = {
    "thousands": (
        [("8765432", s) for s in (r"8\,765\,432", "8 765 432", "8,765,432", "8{,}765{,}432", r"8,\!765,\!432")]
        + [("8765432.25", "8.765.432,25"), ("7.25", "7,25"), (r"6,\! 543", "6543")],
        [("1432", "14,32"), ("8765", "8,7,6,5"), ("765", "(8,765)"), ("6543", "6, 543")],
    ),
    "unicode": (
        [
            ("-7", "−7"),
            (r"\frac{3}{4}", "¾"),
            ("11/4", "2¾"),
            (r"3\pi", "3π"),
            (r"\sqrt{7}", "√7"),
            ("34", "３４"),
            ("y^3", "y³"),
            (r"2\sqrt{7}", "2√7"),
            (r"7\times 10^{5}", "7 × 10⁵"),
            (r"x \le 2", "x ≤ 2"),
            ("a_1", "a₁"),
        ],
        [("-7", "7"), (r"\frac{3}{4}", "⅓"), ("y^3", "y²")],
    ),
    "mixed numbers": (
        [("11/8", "1 3/8"), ("11/8", r"1\frac{3}{8}"), ("-11/8", r"-1\frac{3}{8}"), ("11/8", r"1\frac38")],
        [("3/8", "1 3/8"), ("1", "1 3/8"), ("8", "5 8/3"), ("3", "3 5/0")],
    ),
    "decimals and exponents": (
        [
            ("7000000", "7e6"),
            ("7e6", r"7 \times 10^6"),
            (r"\frac{1}{3}", r"0.\overline{3}"),
            ("5/6", r"0.8\overline{3}"),
            ("1/3", r"0.\dot{3}"),
            ("2/3", "0.666..."),
            ("0.25", ".25"),
            ("9", "9.0"),
            ("1/7", "0.142857142857"),
        ],
        [
            ("2e-9", "2e-4"),
            ("2.5e4", "2.5"),
            ("0.0000003", "0.0000004"),
            ("0", "0.0000003"),
            ("500000000.5", "500000000.6"),
            ("1/3", "0.3"),
            (r"\pi", "3.14"),
            ("3.14", r"\pi"),
            ("5.001", "5"),
        ],
    ),
    "tiny and huge": (
        [(r"2^{2000}", r"4^{1000}"), (r"\frac{1}{12!}", r"\frac{1}{479001600}")],
        [
            ("1/1500!", "1/1502!"),
            (r"2^{2000}", r"2^{2000}+1"),
            (r"\frac{1}{3^{80}}", r"\frac{1}{3^{81}}"),
            ("7", "7^{7^{7^{7^7}}}"),
            ("7", "((8!)!)!"),
            (r"10^{30}", r"\sqrt{10^{60}+1}"),
            ("1", r"\binom{20000000}{10000000}"),
        ],
    ),
    "percent": (
        [
            (r"35\%", "0.35"),
            (r"35\%", "35"),
            ("35", r"35\%"),
            ("0.35", "35%"),
            (r"35\%", "35 percent"),
            ("7/20", "35%"),
            ("13/300", "4 1/3%"),
        ],
        [("0.35", "35"), (r"35\%", "3.5"), ("35", r"36\%"), ("13/3", "4 1/3%")],
    ),
    "units": (
        [
            (r"7 \text{ kg}", "7"),
            ("7", r"7 \text{ kg}"),
            (r"7 \text{ kg}", r"7000 \text{ g}"),
            ("7 square feet", r"7\text{ ft}^2"),
            (r"70^\circ", "70"),
            (r"70^\circ", "70 degrees"),
            (r"\$7.50", "7.50"),
            ("7.5", r"\$7.50"),
            ("7 cm", "7 pears"),
            ("12", "12个"),
            ("70000", "70 thousand"),
            (r"\$3000000", r"\$3 \text{ million}"),
            ("9", r"9\text{ square units}"),
        ],
        [
            (r"7 \text{ kg}", r"7 \text{ g}"),
            (r"7 \text{ cm}", r"7 \text{ cm}^2"),
            (r"\$7", "€7"),
            ("7 km", "7 hours"),
            (r"70^\circ", r"71^\circ"),
            ("7 kg", "7001 g"),
        ],
    ),
    "letters and words": (
        [
            ("C", r"\text{(C)}"),
            (r"\text{C}", "C"),
            ("C", r"\textbf{C}"),
            ("C", "(C) seven"),
            ("Friday", r"\text{friday}"),
            (r"\text{Odd}", "odd"),
            ("True", r"\text{true}"),
            ("No", "no"),
            ("seventeen", "17"),
            ("17", r"\text{seventeen}"),
            ("Tom Smith", r"\text{Tom Smith}"),
            (r"\text{none}", "None."),
        ],
        [
            ("C", "D"),
            ("C", "7"),
            ("Friday", "Saturday"),
            ("Friday", "5"),
            (r"\text{odd}", "od"),
            ("Yes", "No"),
            ("17", "seven"),
            ("5", "odd"),
            ("x", "X"),
        ],
    ),
    "dates and times": (
        [
            ("June 3, 1998", "3 June 1998"),
            ("1998-06-03", "June 3rd, 1998"),
            ("7:45", "7:45"),
            ("June 3", r"\text{June 3}"),
        ],
        [
            ("June 3, 1998", "June 4, 1998"),
            ("June 3", "July 3"),
            ("7:45", "7:30"),
            ("7:45", "45"),
            ("1998-06-03", "1989"),
            ("1/3/1998", "2/6/1998"),
            ("June 3, 1998", "1998"),
        ],
    ),
    "lists": (
        [
            ("3, -5", "-5, 3"),
            ("3, 5, 8", r"\{8, 5, 3\}"),
            (r"3 \text{ and } 5", "5, 3"),
            ("3 or 5", "3, 5"),
            ("3, 5", "3 or 5"),
            ("3, 5", "x = 5, x = 3"),
            ("x = 3, x = 5", "3, 5"),
            (r"\{3, 3, 5\}", r"\{3, 5\}"),
            (r"\pm 5", "5, -5"),
            ("5, -5", r"\pm 5"),
            (r"2 \pm \sqrt{3}", r"2 - \sqrt{3}, 2 + \sqrt{3}"),
            ("(1,2), (3,4)", "(3,4), (1,2)"),
            ("3; 5", "3, 5"),
        ],
        [
            ("5", "3, 5"),
            ("3, 5", "5"),
            ("3, 5", "3, 5, 8"),
            (r"\pm 5", "5"),
            ("5", r"\pm 5"),
            ("3 and 5", "5"),
            ("5", "3 or 5"),
            ("11, 22, 33", "12, 21, 33"),
            (r"\{3, 5\}", r"\{3, 6\}"),
            ("x = 3, y = 5", "x = 5, y = 3"),
        ],
    ),
    "tuples and intervals": (
        [
            ("(3, 5)", r"\left(3, 5\right)"),
            ("(3, 5)", "3 < x < 5"),
            ("[3, 5)", r"3 \le x < 5"),
            (r"(-\infty, 3]", r"x \le 3"),
            (r"x \le 3", r"(-\infty, 3]"),
            (r"3 \le x", r"x \ge 3"),
            ("(1, 2.5)", r"(1, \frac{5}{2})"),
            (r"x \in [3, 5]", "[3, 5]"),
            (r"(-\infty, 3) \cup (5, \infty)", r"x < 3 \text{ or } x > 5"),
            (r"[1,2] \cup [3,4]", r"[3,4] \cup [1,2]"),
        ],
        [
            ("(3, 5)", "(5, 3)"),
            ("(3, 5)", "[3, 5)"),
            ("x > 3", r"x \ge 3"),
            ("[3, 5)", "3 < x < 5"),
            ("x < 3", "x > 3"),
            ("(1, 2, 3)", "(3, 2, 1)"),
            (r"(-\infty, 3) \cup (5, \infty)", r"x < 3 \text{ or } x > 6"),
            (r"\infty", r"-\infty"),
        ],
    ),
    "equations": (
        [
            ("x = 8", "8"),
            ("8", "x = 8"),
            ("f(x) = 3x", "3x"),
            ("3x", "f(x) = 3x"),
            ("y = 3x + 1", "y - 3x = 1"),
            ("8", r"k \approx 8"),
            ("y = 3x + 1", "3x + 1"),
            (r"\frac{AB}{CD} = \frac{2}{3}", r"\frac{2}{3}"),
            ("f(n) = n", r"f(n) = n \text{ for all } n"),
        ],
        [("x = 8", "y = 8"), ("x = 8", "9"), ("3x + z = 8", "8"), ("x^2 + y = 0", "0"), ("x = y", "x = z")],
    ),
    "expressions": (
        [
            ("y^2 - 9", "(y-3)(y+3)"),
            (r"\sin^2 t", r"1 - \cos^2 t"),
            (r"\sqrt{y^2}", "|y|"),
            ("(y+1)^2", "y^2 + 2y + 1"),
            (r"\frac{y}{2}", "0.5y"),
            (r"5\sqrt{3}", r"\sqrt{75}"),
            (r"\frac{1}{\sqrt{3}}", r"\frac{\sqrt{3}}{3}"),
            (r"1-\frac{1}{e}", r"1-\frac{1}{\mathrm{e}}"),
        ],
        [
            ("y^2 - 9", "(y-3)(y+2)"),
            ("y + 1", "z + 1"),
            ("6", r"6\sqrt{2}"),
            (r"3\sqrt{7}", "3"),
            (r"1-\frac{1}{\mathrm{e}}", r"1+\frac{1}{\mathrm{e}}"),
            ("y + 2n + 1", "y + 1"),
            (r"\sum_{k=0}^{n} k", r"\sum_{k=0}^{m} k"),
        ],
    ),
    "complex": (
        [
            ("2 - 5i", "-5i + 2"),
            (r"e^{i\pi/4}", r"\frac{\sqrt{2}}{2} + \frac{\sqrt{2}}{2}i"),
            ("2 - 5i", "2.0 + -5.0i"),
            (r"\frac{2}{3}i", r"\frac23 i"),
        ],
        [("2 - 5i", "2 + 5i"), ("i", "-i"), (r"e^{i\pi/4}", r"\frac{1}{2} + \frac{1}{2}i")],
    ),
    "matrices": (
        [
            (r"\begin{pmatrix} 5 & 6 \\ 7 & 8 \end{pmatrix}", r"\begin{bmatrix}5&6\\7&8\end{bmatrix}"),
            (r"\begin{pmatrix} 1/2 \\ 3 \end{pmatrix}", r"\begin{pmatrix} 0.5 \\ 3 \end{pmatrix}"),
        ],
        [
            (r"\begin{pmatrix} 5 & 6 \\ 7 & 8 \end{pmatrix}", r"\begin{pmatrix} 5 & 7 \\ 6 & 8 \end{pmatrix}"),
            (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 3 \end{pmatrix}"),
            ("2", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        ],
    ),
    "bases and ratios": (
        [("1203_4", "1203_{4}"), ("1203_4", "1203"), ("101_2", "5_{10}"), ("5:8", "5:8"), ("V_1:V_2 = 5:8", "5:8")],
        [("1203_4", "1203_5"), ("1203_4", "1302_4"), ("1203_4", "99"), ("5:8", "8:5")],
    ),
    "wrapping": (
        [
            (gold, f"{{{gold}}}")
            for gold in ("7", "(3, 5)", r"\text{Anna}", "[0, 1)", r"\{1, 2\}", r"x \in [-3, 8]", "70,500")
        ]
        + [
            ("7", r"\boxed{7}"),
            ("7", r"x = \boxed{7}"),
            ("7", "((((7))))"),
            ("7", "$7$"),
            ("7", "7."),
            ("(1,2)", "((1,2))"),
        ]
        + [("7", "(" * 5000 + "7" + ")" * 5000)],
        [("7", "{8}"), ("7", r"\boxed{8}")],
    ),
    "roots, angles and residues": (
        [
            (r"\sqrt[3]{-27}", "-3"),
            (r"\sin 30^\circ", r"\frac{1}{2}"),
            (r"\tan(45^\circ)", "1"),
            ("3", r"3 \pmod{7}"),
            (r"3 \pmod{7}", r"3 (\text{mod } 7)"),
        ],
        [(r"\sqrt[3]{-27}", "3"), (r"\sin 30^\circ", r"\sin 30"), (r"3 \pmod{7}", r"3 \pmod{5}"), ("3", r"4 \pmod{7}")],
    ),
    "other ways to say it": (
        [
            ("7", "7 = x"),
            ("7", r"\underline{7}"),
            ("7", r"{\bf 7}"),
            ("7", r"\color{red}{7}"),
            ("3/4", r"\frac{3}{4} \text{ or } 0.75"),
            (r"\text{all real numbers}", r"(-\infty, \infty)"),
            (r"\emptyset", r"\text{no solution}"),
            (r"(-\infty, -a) \cup (a, \infty)", r"x < -a \text{ or } x > a"),
        ],
        [("3/4", r"\frac{3}{4} \text{ or } 0.7"), (r"\emptyset", r"\text{all real numbers}"), ("7", "8 = x")],
    ),
    "what is not defined": ([], [("0", r"\frac{1}{0}"), ("7", r"\frac{7}{0}"), ("7", "(" * 5000 + "7")]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_right_and_wrong(kind):
    for wanted, pairs in zip(("correct", "wrong"), KINDS[kind], strict=True):
        for answer, box in pairs:
            record = Record({"answer": answer, "completion": rf"So it is \boxed{{{box}}}", "finish_reason": "stop"})
            it = verifier.judge(record)
            assert it.verdict == wanted, (answer, box[:60], it)
            early = verifier.quick(record)
            assert early is None or early.verdict == wanted, (answer, box[:60], early)


@pytest.mark.parametrize(
    ("answer", "completion", "verdict"),
    [
        ("220", "Réponse : il reste 220 $ à payer en 12 mois.", "correct"),
        ("220", "Réponse: il reste 220 $ à payer en 12 mois.", "correct"),
        ("12", "答案：一共有12个苹果。", "correct"),
        ("220", "The answer is 220 dollars, to be paid within 12 months.", "correct"),
        ("12", "The answer is 220 dollars, to be paid within 12 months.", "wrong"),
        ("220", "The answer is 12 + 208 = 220.", "correct"),
        ("5", "The answer is $5$ when $x = 2$.", "correct"),
        ("4", "Possible values: 2, 3, 4", "wrong"),
        ("4", "It is 3 or 4", "wrong"),
        ("2, 3, 4", "The values: 2, 3, 4", "correct"),
        ("4", "The answer is 2 or 3 or 4.", "wrong"),
        ("4", "I cannot determine it.", "no_answer"),
        ("4", "There is no such thing.", "no_answer"),
        ("2/7", "There are 7 of them and 2/7 remain.", "correct"),
        ("Friday", "The answer is Friday.", "correct"),
        ("Friday", "The answer is Sunday.", "wrong"),
        ("9", r"\boxed{3}, so after all of it the final answer is $9$. I hope it is correct.", "correct"),
        ("3", r"\boxed{3}, so after all of it the final answer is $9$. I hope it is correct.", "wrong"),
        ("3", r"\boxed{3}. The final answer is in the box.", "correct"),
        ("7", "The answer is 7\\", "correct"),
        (r"\cos t", r"\boxed{\cos h}", "wrong"),
        ("10 m", r"\boxed{10}", "correct"),
        ("10 m", r"\boxed{10 s}", "wrong"),
    ],
)
def test_what_a_text_states(answer, completion, verdict):
    assert verifier.judge({"answer": answer, "completion": completion}).verdict == verdict
