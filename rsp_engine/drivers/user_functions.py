"""User-defined functions: called from SPARQL with plain Python values."""

from __future__ import annotations

import logging
from functools import wraps
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["as_sparql"]

_LOG = logging.getLogger(__name__)

_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGERS = {
    _XSD + kind
    for kind in (
        "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
        "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort",
        "unsignedByte",
    )
}  # fmt: skip
_FLOATS = {_XSD + kind for kind in ("decimal", "double", "float")}


def as_sparql(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of Python values as a function of RDF terms.

    Numbers and booleans are passed as Python values, IRIs and other literals as their text. The
    result becomes a literal, unless it is a term already. None, or an exception, means no value, as
    for any error in SPARQL; the first exception is logged as a warning. Attributes of the function,
    such as `monotone`, are kept.

    >>> as_sparql(lambda a, b: 2 * a + b)(ox.Literal(1), ox.Literal(0.5))
    <Literal value=2.5 ...>
    """
    failed: list[Exception] = []

    @wraps(call)
    def sparql_call(*terms: Any) -> Any:  # noqa: ANN401 - terms of any kind
        try:
            result = call(*map(_value, terms))
        except Exception as error:
            if not failed:
                _LOG.warning("a registered function failed, and returns no value: %r", error)
                failed.append(error)
            return None
        if result is None or isinstance(result, ox.NamedNode | ox.BlankNode | ox.Literal):
            return result
        return ox.Literal(result)

    return sparql_call


def _value(term: object) -> object:
    if isinstance(term, ox.Literal):
        kind = term.datatype.value
        if kind in _INTEGERS:
            return int(term.value)
        if kind in _FLOATS:
            return float(term.value)
        if kind == _XSD + "boolean":
            return term.value in ("true", "1")
        return term.value
    return term.value if isinstance(term, ox.NamedNode | ox.BlankNode) else term
