"""The base class of syntax tree nodes, and how to walk, search and rewrite a tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rsp_engine.errors import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["NOWHERE", "Node", "children", "find", "rewrite_outermost", "rewrite_tree", "walk"]

NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A construct of the language. The span does not count in comparisons."""

    keyword: ClassVar[str] = ""
    """The keyword that introduces the construct, if it has one."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


N = TypeVar("N", bound=Node)


def _fields(node: Node) -> tuple[str, ...]:
    """Return the names of all fields but the span, which is keyword-only."""
    return type(node).__match_args__


def children(node: Node) -> list[Node]:
    """Return the child nodes of a node, in text order."""
    found: list[Node] = []
    for name in _fields(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif value and isinstance(value, tuple):
            _collect(value, found)
    return found


def _collect(values: tuple[object, ...], found: list[Node]) -> None:
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and its descendants, in text order."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))


def find(node: Node, kind: type[N]) -> Iterator[N]:
    """Yield the nodes of a class in a tree, in text order."""
    return (below for below in walk(node) if isinstance(below, kind))


def rewrite_tree(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a tree with `change` applied to every node, children before their parents."""
    return change(_rewrite_children(node, lambda child: rewrite_tree(child, change)))


def rewrite_outermost(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return a tree with nodes replaced by the result of `change`, unless that is `None`.

    `change` is applied to parents before their children, and not below a replaced node.
    """
    replacement = change(node)
    if replacement is not None:
        return replacement
    return _rewrite_children(node, lambda child: rewrite_outermost(child, change))


def _rewrite_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node with `change` applied to its children; the same one if none changes."""
    olds = [getattr(node, name) for name in _fields(node)]
    values = [_rewrite_value(old, change) for old in olds]
    return node if all(map(is_, olds, values)) else type(node)(*values, span=node.span)


def _rewrite_value(value: object, change: Callable[[Node], Node]) -> object:
    if isinstance(value, Node):
        return change(value)
    if isinstance(value, tuple):
        items = tuple([_rewrite_value(item, change) for item in value])
        return value if all(map(is_, value, items)) else items
    return value
