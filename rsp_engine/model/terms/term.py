"""RDF terms as the engine holds them."""

from __future__ import annotations

from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode

__all__ = ["Term"]

Term: TypeAlias = NamedNode | BlankNode | Literal
