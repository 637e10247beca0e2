"""Literals by value: numbers, truth values and times come in as Oxigraph keeps them.

Oxigraph stores `01` and `1` as the same number. If the engine took them for two triples, one that
leaves a window would take the other with it; so all literals have their canonical form from the
start, and equal values are equal terms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.model.terms.stored_literal import stored_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TripleTermError", "canonical_triples"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGER = ox.NamedNode(_XSD + "integer")
_FRACTION = re.compile(r"0|-?0\.[0-9]{0,5}[1-9]|-?[1-9][0-9]{0,5}(\.[0-9]{0,5}[1-9])?")
_ANY = re.compile(".*", re.DOTALL)
_CANONICAL = {
    _XSD + "string": _ANY,
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString": _ANY,
    _INTEGER.value: re.compile(r"0|-?[1-9][0-9]{0,17}"),
    _XSD + "decimal": _FRACTION,
    _XSD + "double": _FRACTION,
}
_SUBJECT = ox.NamedNode("urn:s")


class TripleTermError(ValueError):
    """A triple stands inside another, which SPARQL 1.1 cannot ask for."""


def canonical_triples(triples: Sequence[ox.Triple]) -> Sequence[ox.Triple]:
    """Return triples whose literals are as a store would give them back.

    >>> written = ox.Literal("01", datatype=_INTEGER)
    >>> [triple] = canonical_triples([ox.Triple(_SUBJECT, _SUBJECT, written)])
    >>> triple.object.value
    '1'
    """
    changed = None
    for place, triple in enumerate(triples):
        value = triple.object
        if isinstance(value, ox.Literal):
            kind = value.datatype.value
            form = _CANONICAL.get(kind)
            if form is None or form.fullmatch(value.value) is None:
                kept = stored_literal(value)
                if kept != value:
                    changed = changed or list(triples)
                    changed[place] = ox.Triple(triple.subject, triple.predicate, kept)
        elif isinstance(value, ox.Triple):
            raise TripleTermError("a triple inside another")
    return changed or triples
