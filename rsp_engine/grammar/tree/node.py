"""What every construct of the syntax tree has: its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rsp_engine.errors import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["NOWHERE", "Node", "children", "find", "rewrite_outermost", "rewrite_tree", "walk"]

NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A construct of the language. Nodes are equal when they say the same, wherever they stand."""

    keyword: ClassVar[str] = ""
    """The word that stands for it in a text, if it has one."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


N = TypeVar("N", bound=Node)


def _parts(node: Node) -> tuple[str, ...]:
    """Return the names of what a construct is made of: all its fields but the span."""
    return type(node).__match_args__


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below a node, in the order of the text."""
    for name in _parts(node):
        yield from _nodes(getattr(node, name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it, in the order of the text."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(list(children(current))))


def find(node: Node, kind: type[N]) -> Iterator[N]:
    """Yield the nodes of a kind, in the order of the text."""
    return (below for below in walk(node) if isinstance(below, kind))


def rewrite_tree(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a tree with `change` applied to every node, those below a node before the node."""
    return change(_with_parts(node, lambda below: rewrite_tree(below, change)))


def rewrite_outermost(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return a tree with the nodes replaced that `change` replaces; what is below them is not."""
    changed = change(node)
    if changed is not None:
        return changed
    return _with_parts(node, lambda below: rewrite_outermost(below, change))


def _with_parts(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node with `change` applied to the nodes directly below it."""
    values = [_changed(getattr(node, name), change) for name in _parts(node)]
    return type(node)(*values, span=node.span)


def _changed(value: object, change: Callable[[Node], Node]) -> object:
    if isinstance(value, Node):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_changed(item, change) for item in value)
    return value
