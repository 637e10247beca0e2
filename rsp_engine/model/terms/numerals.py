"""The numbers of literals, as Oxigraph reads them: what it takes for no number is none here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.terms.term import XSD

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "INTEGERS",
    "NUMERALS",
    "SURE",
]

INTEGERS = tuple(
    XSD + kind
    for kind in (
        "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
        "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort",
        "unsignedByte",
    )
)  # fmt: skip
DECIMAL, DOUBLE, FLOAT = XSD + "decimal", XSD + "double", XSD + "float"
SURE = 15
"""An integer or a decimal of so many characters is in range, and no other has its float64."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)")
_DOUBLE = re.compile(r"[!-^`-~]+")  # float() would take spaces, underscores and other digits too


def _is_within(value: int, bits: int) -> bool:
    """Tell whether Oxigraph has such an integer: of 64 bits, or of 128 and 10**-18 for decimals."""
    return -(1 << bits) <= value < 1 << bits


def _integer(text: str) -> float:
    if _INTEGER.fullmatch(text) is None or not _is_within(value := int(text), bits=63):
        raise ValueError(text)
    return float(value)


def _decimal(text: str) -> float:
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise ValueError(text)
    if len(text) > SURE:
        sign, whole, digits = found.groups()
        digits = digits.rstrip("0")
        if len(digits) > 18 or not _is_within(int(sign + whole + digits.ljust(18, "0")), bits=127):
            raise ValueError(text)
    return float(text)


def _double(text: str) -> float:
    if _DOUBLE.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def _float(text: str) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(_double(text)))


NUMERALS: dict[str, Callable[[str], float]] = {
    **dict.fromkeys(INTEGERS, _integer),
    DECIMAL: _decimal,
    DOUBLE: _double,
    FLOAT: _float,
}
"""By datatype, the reader of its texts: the nearest float64, or a `ValueError`.

An xsd:float is the number that it is stored as.
"""
