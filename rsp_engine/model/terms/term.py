"""RDF terms as the engine holds them, and the namespace of their datatypes."""

from __future__ import annotations

from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode

__all__ = ["XSD", "XSD_STRING", "Term"]

Term: TypeAlias = NamedNode | BlankNode | Literal
XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING = XSD + "string"
