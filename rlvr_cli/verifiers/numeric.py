r"""The number of the final answer, within a tolerance, units converted.

The answer of the record is one number with or without a unit: `42`, `-3.5`, `1/3`, `3 \times 10^8 m/s`, `$5`, `25%`,
`20 °C`, `inf`. What a completion may write, and how its number is found among others, is in quantities.py.

- Tolerance: exact when the answer is an integer; else 1e-6 relatively, and 1e-6 absolutely when it is 0. The columns
  `rel_tol` (times the answer's size) and `abs_tol` (in the answer's unit) replace this; the wider of them counts.
- Units (units.py): of one dimension, they are converted (10 cm = 0.1 m); of another dimension, wrong. A completion
  without a unit is taken to be in the answer's. An answer without a unit has the question's unit: the number as
  written has to be equal, whatever its unit. Where converting rounds (degrees, radians), 1e-6 relatively is allowed.
- A percentage is its ratio as well: 25% = 0.25. An answer without a unit that is an integer or above 1 is met by the
  same number in percent too (25 by 25%), below that by the ratio alone (0.5 not by 0.5%).
- Infinity equals itself only, by its sign; nan equals nothing.

A list, a range, alternatives, a bound or a formula is wrong, the reason says which. Formulas are for `math`.
"""

import math
import re
from fractions import Fraction
from functools import lru_cache

from rlvr_cli.errors import RecordError
from rlvr_cli.records import Record, check_columns
from rlvr_cli.verifiers.extraction import nothing
from rlvr_cli.verifiers.final import final_answer, shown
from rlvr_cli.verifiers.judgement import Judgement, correct, wrong
from rlvr_cli.verifiers.quantities import NoQuantityError, NotOneError, Quantity, only_quantity, quantity
from rlvr_cli.verifiers.units import Unit, describe

TOLERANCE = Fraction(1, 10**6)
_NAN = re.compile(r"[-+]?nan", re.IGNORECASE)


def check(record: Record) -> None:
    """The answer is a number, and so are the tolerances. Raises RecordError."""
    check_columns(record, required=["answer"], remedy="numeric compares with a number")
    answer = record["answer"]
    if _gold(answer) is None and not _NAN.fullmatch(answer.strip()):
        raise RecordError(f"{record.where}: answer is {shown(answer)}, expected one number, with or without a unit")
    for name in ("rel_tol", "abs_tol"):
        value = record.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise RecordError(f"{record.where}: {name} is {value!r}, expected a number of at least 0")


def judge(record: Record) -> Judgement:
    """Compare the number of the final answer with the record's answer."""
    final = final_answer(record)
    if isinstance(final, Judgement):
        return final
    text, found = final
    gold = _gold(record["answer"])
    if gold is None:
        return wrong(text[:200], "the record's answer is nan, which nothing equals", **found.detail)
    try:
        answer = quantity(text, found.how)
    except NoQuantityError as none:
        return nothing(record, str(none))
    except NotOneError as several:
        return wrong(text[:200], str(several), **found.detail)
    reason = _difference(gold, answer, record)
    return wrong(answer.text, reason, **found.detail) if reason else correct(answer.text, **found.detail)


quick = judge


@lru_cache(maxsize=4096)
def _gold(answer: str) -> Quantity | None:
    return only_quantity(answer)


def _difference(gold: Quantity, answer: Quantity, record: Record) -> str:
    """Why the two are not equal; empty when they are."""
    expected = f"expected {gold.text}"
    if gold.infinite or answer.infinite:
        return "" if gold.infinite == answer.infinite else expected
    if not gold.units or not answer.units:
        return "" if any(_close(gold, value, record) for value in _bare_readings(gold, answer)) else expected
    pairs = [(mine, yours) for mine in gold.units for yours in answer.units if mine.dimension == yours.dimension]
    if not pairs:
        return f"{expected}: {describe(gold.units[0].dimension)}, not {describe(answer.units[0].dimension)}"
    for mine, yours in pairs:
        value = answer.value if mine == yours else mine.value(yours.base(answer.value))
        if _close(gold, value, record, rounded=mine != yours and (mine.rounded or yours.rounded)):
            return ""
    return expected


def _bare_readings(gold: Quantity, answer: Quantity) -> list[Fraction]:
    """What the answer's number may be in the gold answer's terms, when one of the two has no unit."""
    mine, yours = _ratio(gold), _ratio(answer)
    readings = []
    if not yours or gold.units or (gold.whole and gold.value) or abs(gold.value) > 1:
        readings.append(answer.value)
    if mine:
        readings.append(answer.value / mine.factor)
    if yours:
        readings.append(answer.value * yours.factor)
    return readings


def _ratio(quantity: Quantity) -> Unit | None:
    """The percentage or the like that a quantity is in."""
    return next((unit for unit in quantity.units if unit.dimension == ()), None)


def _close(gold: Quantity, value: Fraction, record: Record, rounded: bool = False) -> bool:
    """Whether a value in the gold answer's unit is within its tolerance."""
    size = abs(gold.value)
    given = [name for name in ("rel_tol", "abs_tol") if record.get(name) is not None]
    if given:
        allowed = max(_written(record.get("rel_tol")) * size, _written(record.get("abs_tol")))
    else:
        allowed = Fraction(0) if gold.whole else TOLERANCE * (size or 1)
    return abs(value - gold.value) <= max(allowed, TOLERANCE * size if rounded else 0)


def _written(tolerance: float | None) -> Fraction:
    """A tolerance as it is written: 0.3, not the float below it."""
    return Fraction(repr(tolerance or 0))
