"""The resolution of relative IRIs in a query without BASE, against `file:` (see `absolute`).

`FROM NAMED WINDOW <w> ON <s>` reads the stream `file:s`, and `FROM <people.ttl>` reads the file
next to the query. The store accepts absolute IRIs only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from rsp_engine.grammar import tree
from rsp_engine.grammar.iris import absolute

__all__ = ["with_absolute_iris"]

_BASE = tree.BaseDecl(tree.Iri("file:"))


def with_absolute_iris(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query without relative IRIs; calls of IRI() resolve against the same base."""
    resolved = cast("tree.QueryUnit", tree.rewrite_tree(query, _absolute))
    has_base = any(isinstance(declaration, tree.BaseDecl) for declaration in query.prologue)
    calls = {call.name for call in tree.find(query, tree.BuiltInCall)}
    if has_base or not calls & {"IRI", "URI"}:
        return resolved
    return replace(resolved, prologue=(_BASE, *resolved.prologue))


def _absolute(node: tree.Node) -> tree.Node:
    match node:
        case tree.Iri(value):
            return tree.Iri(absolute(value), span=node.span)
        case tree.Literal(_, datatype):
            return replace(node, datatype=absolute(datatype))
        case _:
            return node
