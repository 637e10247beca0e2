"""Literals as Oxigraph keeps them: the float64 values of numbers, and canonical forms."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.xsd import XSD

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DECIMAL", "DOUBLE", "FLOAT", "INTEGERS", "NUMERALS", "SURE", "stored_literal"]

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
"""The characters up to which an integer or a decimal is in range and has a float64 of its own.

A float64 distinguishes all decimals of 15 significant digits.
"""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)")
_DOUBLE = re.compile(r"[!-^`-~]+")  # float() also accepts spaces, underscores and other digits


def _is_within(value: int, bits: int) -> bool:
    """Return whether a value fits Oxigraph: integers have 64 bits, decimals 128 (x 10**-18)."""
    return -(1 << bits) <= value < 1 << bits


def _integer(text: str) -> float:
    if _INTEGER.fullmatch(text) is None or not _is_within(value := int(text), bits=63):
        raise ValueError(text)
    return float(value)


def _decimal(text: str) -> float:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    if len(text) > SURE:
        sign, whole, digits = match.groups()
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
"""The parser of each numeric datatype: it returns the nearest float64 or raises `ValueError`.

An xsd:float is rounded to float32 first, as it is stored.
"""


_ANY = ox.NamedNode("urn:any")


@lru_cache(maxsize=65_536)
def stored_literal(literal: ox.Literal) -> ox.Literal:
    """Return a literal as the store returns it, by a round trip through an empty store.

    >>> stored_literal(ox.Literal("01", datatype=ox.Literal(1).datatype)) == ox.Literal(1)
    True
    """
    store = ox.Store()
    store.add(ox.Quad(_ANY, _ANY, literal))
    [quad] = store
    assert isinstance(quad.object, ox.Literal), "a literal stays a literal"  # noqa: S101
    return quad.object
