"""Canonical literals: numbers, booleans and dates in the form in which Oxigraph stores them.

Oxigraph stores `01` and `1` as the same number. If the engine treated them as two triples, the
expiry of one would delete the other from the window. Literals therefore get their canonical form on
input, so that equal values are equal terms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.model.terms.numerals import stored_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TripleTermError", "canonical_triples"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGER = ox.NamedNode(_XSD + "integer")
# Six digits on each side of the point: such numbers are canonical as decimal and as double.
_FRACTION = re.compile(r"0|-?0\.[0-9]{0,5}[1-9]|-?[1-9][0-9]{0,5}(\.[0-9]{0,5}[1-9])?")
_ANY = re.compile(".*", re.DOTALL)
# By datatype: lexical forms that are surely canonical, so that no literal has to be converted.
_CANONICAL = {
    _XSD + "string": _ANY,
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString": _ANY,
    _INTEGER.value: re.compile(r"0|-?[1-9][0-9]{0,17}"),
    _XSD + "decimal": _FRACTION,
    _XSD + "double": _FRACTION,
}
_SUBJECT = ox.NamedNode("urn:s")


class TripleTermError(ValueError):
    """A triple term (RDF 1.2): SPARQL 1.1 cannot query it."""


def canonical_triples(triples: Sequence[ox.Triple]) -> Sequence[ox.Triple]:
    """Return the triples with every literal as an Oxigraph store would return it.

    >>> written = ox.Literal("01", datatype=_INTEGER)
    >>> [triple] = canonical_triples([ox.Triple(_SUBJECT, _SUBJECT, written)])
    >>> triple.object.value
    '1'
    """
    changed = None
    for index, triple in enumerate(triples):
        value = triple.object
        if isinstance(value, ox.Literal):
            form = _CANONICAL.get(value.datatype.value)
            if form is None or form.fullmatch(value.value) is None:
                stored = stored_literal(value)
                if stored != value:
                    changed = changed or list(triples)
                    changed[index] = ox.Triple(triple.subject, triple.predicate, stored)
        elif isinstance(value, ox.Triple):
            raise TripleTermError("a triple inside another")
    return changed or triples
