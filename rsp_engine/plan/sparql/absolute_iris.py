"""Relative IRIs of a query without BASE: they are resolved against `file:`, see `absolute`.

So `FROM NAMED WINDOW <w> ON <s>` reads the stream `file:s`, and `FROM <people.ttl>` the file beside
the query. A store has absolute IRIs only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from rsp_engine.grammar import tree
from rsp_engine.grammar.iris import absolute

__all__ = ["with_absolute_iris"]

_BASE = tree.BaseDecl(tree.Iri("file:"))


def with_absolute_iris(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query without relative IRIs; IRI() knows the base too."""
    made = cast("tree.QueryUnit", tree.rewrite_tree(query, _absolute))
    has_base = any(isinstance(declaration, tree.BaseDecl) for declaration in query.prologue)
    calls = {call.name for call in tree.find(query, tree.BuiltInCall)}
    if has_base or not calls & {"IRI", "URI"}:
        return made
    return replace(made, prologue=(_BASE, *made.prologue))


def _absolute(node: tree.Node) -> tree.Node:
    match node:
        case tree.Iri(value):
            return tree.Iri(absolute(value), span=node.span)
        case tree.Literal(_, datatype):
            return replace(node, datatype=absolute(datatype))
        case _:
            return node
