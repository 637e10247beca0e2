"""Traversals of expressions: their parts, their aggregates, their ungrouped variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.grammar.tree import Aggregate, Exists, FunctionCall, Node, Var, children

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["aggregates", "is_aggregate", "parts", "ungrouped_variables"]


def parts(expression: Node) -> Iterator[Node]:
    """Yield an expression and its sub-expressions; the patterns of EXISTS are not entered."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        yield current
        if not isinstance(current, Exists):
            waiting.extend(reversed(children(current)))


def is_aggregate(node: Node) -> bool:
    """Return whether a node is an aggregate; a call of an IRI with DISTINCT is one as well."""
    return isinstance(node, Aggregate) or (isinstance(node, FunctionCall) and node.distinct)


def aggregates(expression: Node) -> Iterator[Node]:
    """Yield the aggregates of an expression, nested ones included."""
    return (part for part in parts(expression) if is_aggregate(part))


def ungrouped_variables(expression: Node) -> Iterator[Var]:
    """Yield the variables of an expression that are outside all aggregates."""
    waiting = [expression]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Var):
            yield current
        elif not isinstance(current, Exists) and not is_aggregate(current):
            waiting.extend(reversed(children(current)))
