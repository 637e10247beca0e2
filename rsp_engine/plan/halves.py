"""The two objects of a pair in a query: patterns that are the same but for their variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.plan.ranked import Terms, plain_terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Halves", "NotAlikeError", "NotPairsError", "with_names"]


class NotPairsError(Exception):
    """Why a query is not one of pairs."""


class NotAlikeError(NotPairsError):
    """The patterns of a query are two, but not the same."""


@dataclass(frozen=True, slots=True)
class Halves:
    """The patterns of the first and the second object, and their variables, one by one."""

    window: tree.Window
    triples: tuple[Terms, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]

    @classmethod
    def of(cls, query: tree.Query) -> Halves:
        """Return the halves of a query, or raise why it has none."""
        select = query.form
        if not isinstance(select, tree.Select):
            raise NotPairsError("only a SELECT can rank")
        if len(query.windows) != 1:
            raise NotPairsError("pairs are of exactly one window")
        elements = [e for e in select.where.elements if not isinstance(e, tree.Filter)]
        if query.values is not None or len(elements) != 1:
            raise NotPairsError("only filters may stand beside the WINDOW of pairs")
        [window] = elements
        if not isinstance(window, tree.Window) or not isinstance(window.name, tree.Iri):
            raise NotPairsError("pairs are of exactly one WINDOW clause")
        inside = [e for e in window.group.elements if not isinstance(e, tree.Filter)]
        one, other = _components(plain_terms(inside))
        names = _renamed(one, other)
        return cls(window, one, tuple(names), tuple(names.values()))

    def side(self, names: set[str]) -> str | None:
        """Return which object some variables are of: a, b, or nothing for both."""
        if names <= set(self.first):
            return "a"
        return "b" if names <= set(self.second) else None

    def first_of(self, node: tree.Node) -> tree.Node:
        """Return an expression with the variables of the first object, from either."""
        names = dict(zip(self.second, self.first, strict=True))
        return with_names(node, names)


def with_names(node: tree.Node, names: Mapping[str, str]) -> tree.Node:
    """Return a part of a query with other names for some variables."""

    def renamed(inner: tree.Node) -> tree.Node:
        if isinstance(inner, tree.Var) and inner.name in names:
            return tree.Var(names[inner.name])
        return inner

    return tree.rewrite(node, renamed)


def _components(triples: Sequence[Terms]) -> tuple[tuple[Terms, ...], tuple[Terms, ...]]:
    """Return the two sets of triple patterns that have no variable in common."""
    found: list[tuple[set[str], list[int]]] = []
    for number, triple in enumerate(triples):
        names = {term.name for term in triple if isinstance(term, tree.Var)}
        touching = [each for each in found if each[0] & names]
        joined = (names.union(*(each[0] for each in touching)), [number])
        for each in touching:
            joined[1].extend(each[1])
            found.remove(each)
        found.append(joined)
    if len(found) != 2:
        raise NotPairsError("the window has not two patterns without a variable in common")
    one, other = sorted(sorted(numbers) for _, numbers in found)
    return tuple(triples[n] for n in one), tuple(triples[n] for n in other)


def _renamed(one: tuple[Terms, ...], other: tuple[Terms, ...]) -> dict[str, str]:
    """Return the variables of one pattern, each with that of the other in its place."""
    names: dict[str, str] = {}
    wrong = NotAlikeError("the two patterns differ in more than the names of variables")
    if len(one) != len(other):
        raise wrong
    for left, right in zip(
        (term for triple in one for term in triple),
        (term for triple in other for term in triple),
        strict=True,
    ):
        if isinstance(left, tree.Var) and isinstance(right, tree.Var):
            if names.setdefault(left.name, right.name) != right.name:
                raise wrong
        elif left != right:
            raise wrong
    if len(set(names.values())) < len(names):
        raise wrong
    return names
