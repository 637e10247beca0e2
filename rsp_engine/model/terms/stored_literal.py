"""Literals as a store gives them back.

Oxigraph keeps numbers, truth values and times by their value: `01` and `1` are the same literal.
"""

from __future__ import annotations

from functools import lru_cache

import pyoxigraph as ox

__all__ = ["stored_literal"]

_ANY = ox.NamedNode("urn:any")


@lru_cache(maxsize=65_536)
def stored_literal(literal: ox.Literal) -> ox.Literal:
    """Put a literal into a store, and take it out again.

    >>> stored_literal(ox.Literal("01", datatype=ox.Literal(1).datatype)) == ox.Literal(1)
    True
    """
    store = ox.Store()
    store.add(ox.Quad(_ANY, _ANY, literal))
    [quad] = store
    assert isinstance(quad.object, ox.Literal), "a literal stays one"  # noqa: S101
    return quad.object
