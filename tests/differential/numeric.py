"""Numbers of SPARQL: integers of 64 bits, decimals of 128 bits with 18 digits, floats, doubles.

What does not fit its type is an error: `None`. The product of two decimals is exact or an error.
Their quotient is truncated after 18 digits; it is an error where Oxigraph has no room for these
digits, which depends on how far it can shift the dividend to the left and the divisor to the right.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Literal as Choice

Kind = Choice["integer", "decimal", "float", "double"]
KINDS: tuple[Kind, ...] = ("integer", "decimal", "float", "double")
"""From the narrowest to the widest."""
UNIT = 10**18
_DERIVED = (
    "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
    "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
)  # fmt: skip
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}


@dataclass(frozen=True, slots=True)
class Number:
    """A number; that of a decimal is a fraction, that of a float is one of 32 bits."""

    kind: Kind
    value: int | Fraction | float

    def text(self) -> str:
        if isinstance(self.value, float):
            return _float_text(self.value, is_short=self.kind == "float")
        whole, part = divmod(abs(Fraction(self.value)), 1)
        digits = f"{int(part * UNIT):018}".rstrip("0")
        sign = "-" if self.value < 0 else ""
        return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"

    @property
    def is_nan(self) -> bool:
        return isinstance(self.value, float) and math.isnan(self.value)

    def as_double(self) -> float:
        """Return the nearest double, as Oxigraph finds it: a decimal by its digits."""
        if not isinstance(self.value, Fraction):
            return float(self.value)
        digits, scale = _digits(self.value)
        return float(digits) / float(scale)

    def nearest(self) -> float:
        """Return the nearest double, which never falls when the value rises."""
        return float(self.value)

    def exact(self) -> Fraction:
        """Return the value; that of a float or a double by its shortest decimal form."""
        if isinstance(self.value, float):
            return Fraction(repr(self.value)) if math.isfinite(self.value) else Fraction(0)
        return Fraction(self.value)


def _digits(value: Fraction) -> tuple[int, int]:
    """Return a decimal as a whole number and the power of ten that it is divided by."""
    digits, scale = int(value * UNIT), UNIT
    while digits and scale > 1 and digits % 10 == 0:
        digits, scale = digits // 10, scale // 10
    return digits, scale


def integer(value: int) -> Number | None:
    return Number("integer", value) if -(2**63) <= value < 2**63 else None


def decimal(value: Fraction) -> Number | None:
    scaled = value * UNIT
    fits = scaled.denominator == 1 and -(2**127) <= scaled < 2**127
    return Number("decimal", value) if fits else None


def short(value: float) -> float:
    """Return the nearest number of 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def double(value: float, kind: Kind = "double") -> Number:
    return Number(kind, short(value) if kind == "float" else value)


def read(text: str, kind: str) -> Number | None:
    """Return the number that a literal of a type stands for; nothing if it is none."""
    if kind in {"integer", *_DERIVED}:
        return integer(int(text)) if _INTEGER.fullmatch(text) else None
    if kind == "decimal":
        return decimal(Fraction(text)) if _DECIMAL.fullmatch(text) else None
    if kind in {"float", "double"} and (text in _SPECIAL or _DOUBLE.fullmatch(text)):
        return double(_SPECIAL.get(text) or float(text), "float" if kind == "float" else "double")
    return None


def _float_text(value: float, *, is_short: bool) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    digits = Decimal(_shortest(value) if is_short else repr(value))
    # Of two texts that are as short and as near, the larger: 2396745.25 of 32 bits is 2396745.3.
    upper = Decimal(value).quantize(digits, ROUND_HALF_UP, Context(prec=800))
    is_same = (short(float(upper)) if is_short else float(upper)) == value
    return _plain(upper if is_same else digits)


def _shortest(value: float) -> str:
    """Return the shortest text of a number of 32 bits."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next(text for text in texts if short(float(text)) == value)


def _plain(value: Decimal) -> str:
    """Write a number without an exponent, and without zeros at its end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def widest(*given: Number) -> Kind:
    return max((number.kind for number in given), key=KINDS.index)


def widened(number: Number, kind: Kind) -> Number:
    """Return a number as one of a wider type."""
    if number.kind == kind:
        return number
    if kind == "decimal":
        return Number("decimal", Fraction(number.value))
    if kind == "double":
        return double(number.as_double())
    if isinstance(number.value, Fraction):
        digits, scale = _digits(number.value)
        return double(short(digits) / short(scale), "float")
    return double(float(number.value), "float")


def calculated(operator: str, left: Number, right: Number) -> Number | None:
    """Return the sum, difference, product or quotient of two numbers, in the wider type."""
    kind = widest(left, right)
    if kind == "integer" and operator == "/":
        kind = "decimal"
    one, other = widened(left, kind).value, widened(right, kind).value
    if isinstance(one, float) and isinstance(other, float):
        return double(_with_floats(operator, one, other), kind)
    exact = Fraction(one), Fraction(other)
    if operator == "/":
        return _quotient(*exact)
    result = _exactly(operator, *exact)
    return integer(int(result)) if kind == "integer" else decimal(result)


def _exactly(operator: str, left: Fraction, right: Fraction) -> Fraction:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case _:
            return left * right


def _with_floats(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _ if right == 0:
            if left == 0 or math.isnan(left):
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1, right)
        case _:
            return left / right


def _quotient(left: Fraction, right: Fraction) -> Number | None:
    if right == 0:
        return None
    dividend, divisor = int(left * UNIT), int(right * UNIT)
    shifts = 0
    while dividend and -(2**127) <= dividend * 10 ** (shifts + 1) < 2**127:
        shifts += 1
    while divisor % 10 == 0:
        divisor, shifts = divisor // 10, shifts + 1
    if shifts < 18:
        return None
    scaled = abs(left / right * UNIT)
    cut = scaled.numerator // scaled.denominator
    return decimal(Fraction(cut if (left < 0) == (right < 0) else -cut, UNIT))


def negated(number: Number) -> Number | None:
    match number.kind:
        case "integer":
            return integer(-int(number.value))
        case "decimal":
            return decimal(-Fraction(number.value))
        case kind:
            return Number(kind, -number.value)


def compared(operator: str, left: Number, right: Number) -> bool:
    """Tell how two numbers compare, in the wider type; nothing compares with NaN."""
    kind = widest(left, right)
    one, other = widened(left, kind).value, widened(right, kind).value
    match operator:
        case "=":
            return one == other
        case "<":
            return one < other
        case _:
            return one <= other
