r"""Units of measurement by a table: what `10 cm`, `3 m/s^2`, `20 square feet` or `$5 per hour` is measured in.

A unit is a factor to the base units of its dimension (metre, gram, second, ...). SI prefixes go before SI symbols and
names; units multiply, divide and have powers. Each currency is a dimension of its own. A temperature that stands alone
is a point on its scale (0 °C is 273.15 K); inside a compound unit (J/°C) it is a difference.

A word with several meanings (pounds: mass or money; degrees: angle or temperature) gives all of them; the reader takes
the one that fits.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

Dimension = tuple[tuple[str, int], ...]  # base and power, sorted, no power of 0

PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459")


@dataclass(frozen=True)
class Unit:
    """What a number is multiplied by (and then shifted by) to be in base units, and of what dimension that is."""

    factor: Fraction
    dimension: Dimension
    offset: Fraction = Fraction(0)
    rounded: bool = False  # the factor is irrational

    def base(self, value: Fraction) -> Fraction:
        """A value in this unit, in base units."""
        return value * self.factor + self.offset

    def value(self, base: Fraction) -> Fraction:
        """A value in base units, in this unit."""
        return (base - self.offset) / self.factor


# One line a dimension: base units' powers | unit = factor, all its names. A `+` before a name: it takes SI prefixes.
_TABLE = """
length 1 | 1 = +m +metre +meter | 1e-10 = Å angstrom ångström | 0.0254 = in inch inches ″ | 0.3048 = ft foot feet ′
length 1 | 0.9144 = yd yard | 1609.344 = mi mile | 1852 = nmi | 149597870700 = au AU | 9460730472580800 = ly lightyear
mass 1 | 1 = +g +gram +gramme | 1e6 = t tonne | 453.59237 = lb lbs pound | 28.349523125 = oz ounce | 6350.29318 = stone
mass 1 | 1e6 = ton | 907184.74 = ton | 1.66053906660e-24 = u amu Da
time 1 | 1 = +s sec +second | 60 = min minute | 3600 = h hr hrs hour | 86400 = d day | 604800 = wk week
time 1 | 31557600 = yr year | 31536000 = yr year
current 1 | 1 = +A amp +ampere
amount 1 | 1 = +mol mole moles
light 1 | 1 = +cd candela
data 1 | 1 = +bit | 8 = +B +byte | 8000 = KB | 8192 = KiB | 8388608 = MiB | 8589934592 = GiB
length 2 | 10000 = ha hectare | 4046.8564224 = acre
length 3 | 0.001 = +l +L +litre +liter | 0.003785411784 = gal gallon | 0.000946352946 = qt quart
length 3 | 0.000473176473 = pint | 0.0002365882365 = cup | 0.00001478676478125 = tbsp tablespoon
length 3 | 0.00000492892159375 = tsp teaspoon | 1e-6 = cc
length 1 time -1 | 0.44704 = mph | 1852/3600 = knot kn | 1/3.6 = kph kmph
mass 1 length 1 time -2 | 1000 = +N +newton | 0.01 = dyn dyne | 4448.2216152605 = lbf
mass 1 length 2 time -2 | 1000 = +J +joule | 4184 = +cal +calorie | 4184000 = Cal
mass 1 length 2 time -2 | 1.602176634e-16 = +eV +electronvolt | 3.6e6 = +Wh
mass 1 length 2 time -3 | 1000 = +W +watt | 745699.87158227022 = hp horsepower
mass 1 length -1 time -2 | 1000 = +Pa +pascal | 1e8 = +bar | 101325000 = atm atmosphere
mass 1 length -1 time -2 | 133322.387415 = mmHg | 101325000/760 = torr
time -1 | 1 = +Hz +hertz +Bq +becquerel
current 1 time 1 | 1 = +C +coulomb | 3600 = +Ah
mass 1 length 2 time -3 current -1 | 1000 = +V +volt
mass 1 length 2 time -3 current -2 | 1000 = +Ω +ohm +Ohm
mass -1 length -2 time 4 current 2 | 1/1000 = +F +farad
mass 1 time -2 current -1 | 1000 = +T +tesla
mass 1 length 2 time -2 current -1 | 1000 = +Wb +weber
mass 1 length 2 time -2 current -2 | 1000 = +H +henry henries
amount 1 length -3 | 1000 = +M +molar
temperature 1 | 1 = +K +kelvin
USD 1 | 1 = $ USD dollar buck US$ | 1/100 = ¢ cent cents penny pennies
EUR 1 | 1 = € EUR euro | 1/100 = cent
GBP 1 | 1 = £ GBP pound quid | 1/100 = p pence penny
JPY 1 | 1 = ¥ JPY yen
CNY 1 | 1 = ¥ CNY RMB yuan
INR 1 | 1 = ₹ INR Rs rupee | 1/100 = paise paisa
ratio | 1/100 = % percent pct percentage | 1/1000 = ‰ permille permil | 1e-6 = ppm | 1e-9 = ppb
data 1 time -1 | 1 = +bps
angle 1 | 1 = +rad +radian
"""
_PREFIXES = {
    "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "da": 1,
    "d": -1, "c": -2, "m": -3, "µ": -6, "μ": -6, "u": -6, "n": -9, "p": -12, "f": -15,
}  # fmt: skip
_PREFIX_NAMES = {
    "peta": 15, "tera": 12, "giga": 9, "mega": 6, "kilo": 3, "hecto": 2, "deca": 1, "deka": 1,
    "deci": -1, "centi": -2, "milli": -3, "micro": -6, "nano": -9, "pico": -12, "femto": -15,
}  # fmt: skip
SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}


def _read_table() -> dict[str, list[Unit]]:
    found: dict[str, list[Unit]] = {}
    prefixed: list[tuple[str, Unit]] = []
    for line in _TABLE.strip().splitlines():
        head, *entries = line.split(" | ")
        parts = head.split()
        dimension = tuple(sorted((parts[at], int(parts[at + 1])) for at in range(0, len(parts) - 1, 2)))
        for entry in entries:
            factor, _, names = entry.partition(" = ")
            above, _, below = factor.partition("/")
            unit = Unit(Fraction(above) / Fraction(below or 1), dimension)
            for name in names.split():
                if name[0] == "+":
                    prefixed.append((name[1:], unit))
                found.setdefault(name.removeprefix("+"), []).append(unit)
    for name, unit in prefixed:  # a unit of the table comes before a prefixed one: min, ft, cd
        for prefix, power in (_PREFIX_NAMES if len(name) > 3 else _PREFIXES).items():
            found.setdefault(prefix + name, []).append(Unit(unit.factor * Fraction(10) ** power, unit.dimension))
    degree, kelvin = Unit(PI / 180, (("angle", 1),), rounded=True), (("temperature", 1),)
    celsius = Unit(Fraction(1), kelvin, Fraction("273.15"))
    fahrenheit = Unit(Fraction(5, 9), kelvin, Fraction("459.67") * Fraction(5, 9))
    for name in ("°", "deg", "degree"):
        found[name] = [degree, celsius, fahrenheit]
    for name in ("°C", "℃", "degC", "celsius", "centigrade"):
        found[name] = [celsius]
    for name in ("°F", "℉", "degF", "fahrenheit"):
        found[name] = [fahrenheit]
    found["°K"] = found["K"]
    found["C"].append(celsius)
    found["F"].append(fahrenheit)
    found["′"].append(Unit(PI / 10800, degree.dimension, rounded=True))
    found["″"].append(Unit(PI / 648000, degree.dimension, rounded=True))
    for name in ("rev", "revolution", "turn"):
        found[name] = [Unit(2 * PI, degree.dimension, rounded=True)]
    return found


_UNITS = _read_table()
# Names that are written in small letters whatever the case of the text; symbols keep theirs, but for the commonest.
_NAMES = {name.casefold(): units for name, units in _UNITS.items() if len(name) > 3}
_ANY_CASE = {"km", "cm", "mm", "kg", "mg", "lb", "lbs", "oz", "ft", "yd", "min", "sec", "hr", "hrs", "ml", "mph", "usd"}
_ANY_CASE_UNITS = {name: _UNITS.get(name) or _UNITS[name.upper()] for name in _ANY_CASE - {"ml"}} | {"ml": _UNITS["mL"]}


def named(word: str) -> tuple[Unit, ...]:
    """The units that a word or symbol stands for; none when it is no unit."""
    found = _UNITS.get(word)
    if found is None:
        small = word.casefold()
        for name in (small, small.removesuffix("s"), small.removesuffix("es")):
            found = found or _NAMES.get(name) or _ANY_CASE_UNITS.get(name)
            found = found or (_UNITS.get(name) if len(name) > 2 else None)
    return tuple(found or ())


_WRAPPED = re.compile(r"\\(?:text(?:rm|bf|it)?|math(?:rm|bf|it)|rm|mbox|operatorname|unit|si)\s*\{([^{}]*)\}")
_REWRITES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\\(?:cdot|times)(?![A-Za-z])|[·⋅×∙]"), "*"),
    (_WRAPPED, r"\1"),
    (re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"\1/\2"),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![A-Za-z])|\\textdegree|º|˚"), "°"),
    (re.compile(r"\\(?:mu|micro)(?![A-Za-z])\s*"), "µ"),
    (re.compile(r"\\(?:Omega|ohm)(?![A-Za-z])"), "Ω"),
    (re.compile(r"\\(?:rm|mathrm)(?![A-Za-z])"), " "),
    (re.compile(r"\\[,;:! ]|~|\\q?quad(?![A-Za-z])"), " "),
    (re.compile(r"\\([%$])"), r"\1"),
    (re.compile(r"\^\s*\{\s*([-+]?\d)\s*\}"), r"^\1"),
    (re.compile(r"°\s+(?=[CFK](?![A-Za-z]))"), "°"),
    (re.compile(r"(?:°|\bdegrees?)\s*(celsius|centigrade|fahrenheit|kelvin)", re.IGNORECASE), r"\1"),
    (re.compile(r"(?:°|\bdegrees?)\s*(C|F|K)(?![A-Za-z])"), r"°\1"),
    (re.compile(r"\bper\s+cent\b", re.IGNORECASE), "percent"),
    (re.compile(r"\bpercent(?:age)? points?\b", re.IGNORECASE), "percent"),
    (re.compile(r"\blight[- ]years?\b", re.IGNORECASE), "ly"),
    (re.compile(r"\bnautical miles?\b", re.IGNORECASE), "nmi"),
    (re.compile(r"\bmetric tons?\b", re.IGNORECASE), "tonne"),
    (re.compile(r"\b(?:US|U\.S\.)\s+(?=dollars?\b|cents?\b)", re.IGNORECASE), ""),
    (re.compile(r"(?<![A-Za-z])per(?![A-Za-z])", re.IGNORECASE), "/"),
    (re.compile(r"\bsquare[ -]+([A-Za-z]+)", re.IGNORECASE), r"\1^2"),
    (re.compile(r"\bcubic[ -]+([A-Za-z]+)", re.IGNORECASE), r"\1^3"),
    (re.compile(r"\bsq(?:\.\s*|\s+)([A-Za-z]+)", re.IGNORECASE), r"\1^2"),
    (re.compile(r"\bcu\.\s*([A-Za-z]+)", re.IGNORECASE), r"\1^3"),
    (re.compile(r"([A-Za-z])\s+squared\b", re.IGNORECASE), r"\1^2"),
    (re.compile(r"([A-Za-z])\s+cubed\b", re.IGNORECASE), r"\1^3"),
]
_RAISED = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_RAISED_TO = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def plain_units(text: str) -> str:
    """The text with units written plainly: `m/s^2`, `°C`, `%`."""
    text = _RAISED.sub(lambda power: "^" + power[0].translate(_RAISED_TO), text)
    for pattern, written in _REWRITES:
        text = pattern.sub(written, text)
    return text


_SPACE = re.compile(r"[ \t]*")
_TERM = re.compile(r"(°?[A-Za-zµμΩÅ]+|[°℃℉%‰$€£¥₹¢′″]|US\$)(?:\^?\(?([-+]?\d)\)?(?!\d))?")
_SLASH = re.compile(r"[ \t]*/[ \t]*(?=[A-Za-z])")
_LONE = ("in", "a", "at", "as", "A")  # units that are words: not before another word


def unit_at(text: str, start: int, begun: tuple[Unit, ...] = ()) -> tuple[tuple[Unit, ...], int]:
    """The unit that begins at `start` of a text in plain units, in all its meanings, and where it ends.

    No unit ends where it begins. `begun` is what stands before the number: a currency, which `/hour` may follow.
    """
    meanings = begun
    end = position = start
    sign, grouped = 1, False
    if slash := _SLASH.match(text, start):
        sign, position = -1, slash.end()
    elif begun:
        return begun, start
    while True:
        match = _TERM.match(text, _SPACE.match(text, position).end())  # type: ignore[union-attr]
        found = named(match[1]) if match else ()
        if not match or not found or (match[1] in _LONE and _before_word(text, match.end())):
            break
        if meanings and match[1] in (*_LONE, "%", "percent") and not text[end : match.start()].strip():
            break
        meanings = _product(meanings, found, sign * int(match[2] or 1))
        end = position = match.end()
        if grouped and text[end : end + 1] == ")":
            end = position = end + 1
            sign, grouped = 1, False
        ahead = _SPACE.match(text, position).end()  # type: ignore[union-attr]
        mark = text[ahead : ahead + 1] or " "
        if mark == "/":
            sign, position = -1, _SPACE.match(text, ahead + 1).end()  # type: ignore[union-attr]
            if text[position : position + 1] == "(":
                grouped, position = True, position + 1
        elif mark == "*" or (mark in ".-" and text[ahead + 1 : ahead + 2].isalpha()):
            sign, position = (sign if grouped else 1), ahead + 1
        else:
            sign = sign if grouped else 1
    return meanings, end


def _before_word(text: str, position: int) -> bool:
    return re.match(r"[ \t]+[A-Za-z]", text[position : position + 80]) is not None


def _product(one: tuple[Unit, ...], other: tuple[Unit, ...], power: int) -> tuple[Unit, ...]:
    """All the meanings of a product; a scale's offset goes."""
    if not one and power == 1:
        return other
    product = []
    for mine in one or (Unit(Fraction(1), ()),):
        for yours in other:
            powers = dict(mine.dimension)
            for base, exponent in yours.dimension:
                powers[base] = powers.get(base, 0) + exponent * power
            dimension = tuple(sorted((base, exponent) for base, exponent in powers.items() if exponent))
            product.append(Unit(mine.factor * yours.factor**power, dimension, rounded=mine.rounded or yours.rounded))
    return tuple(dict.fromkeys(product))[:MEANINGS]


MEANINGS = 16  # of one compound unit, at most


@lru_cache(maxsize=4096)
def describe(dimension: Dimension) -> str:
    """A dimension for people: `length`, `length/time^2`, `a ratio`."""
    if not dimension:
        return "a ratio"
    names = {(("length", 2),): "area", (("length", 3),): "volume", (("length", 1), ("time", -1)): "speed"}
    if dimension in names:
        return names[dimension]
    return "·".join(base if power == 1 else f"{base}^{power}" for base, power in dimension)
