"""The two objects of a pair in a query: patterns that are equal up to the names of variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.plan.logical.algebra import Window
from rsp_engine.plan.logical.query import GroupParts
from rsp_engine.plan.shapes.shape import NoMatchError, select_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.grammar.triples import PlainTerms
    from rsp_engine.plan.logical.query import LogicalQuery

__all__ = ["NotAlikeError", "PairPattern", "objects_of", "with_names"]

Object = tuple["PlainTerms", ...]
"""The triple patterns of one of the two objects of a pair."""


class NotAlikeError(NoMatchError):
    """The query has two patterns, which differ in more than the names of variables."""


@dataclass(frozen=True, slots=True)
class PairPattern:
    """The triple patterns of the first object, and the corresponding variables of both objects.

    `filters` are the conditions beside the window and in it.
    """

    window: Window
    triples: Object
    first: tuple[str, ...]
    second: tuple[str, ...]
    filters: tuple[tree.Expression, ...]

    @classmethod
    def of(cls, query: LogicalQuery) -> PairPattern:
        """Return the pair pattern of a query; raise if it has none."""
        select = select_of(query)
        if len(query.windows) != 1:
            raise NoMatchError("pairs need exactly one window", query)
        parts, filters = select.group
        if select.values is not None or len(parts) != 1:
            raise NoMatchError("only filters are allowed next to the WINDOW of pairs", query)
        window = parts[0].node
        if not isinstance(window, Window) or not isinstance(window.name, tree.Iri):
            raise NoMatchError("pairs need exactly one WINDOW clause", parts[0].node)
        inside = GroupParts.of(window.input)
        objects = _connected(inside.plain_patterns)
        if len(objects) != 2:
            reason = "the window does not have two patterns that share no variable"
            raise NoMatchError(reason, window)
        one, other = objects
        names = _renamed(one, other)
        if names is None:
            reason = "the two patterns differ in more than the names of variables"
            raise NotAlikeError(reason, window)
        filters = (*filters, *inside.filters)
        return cls(window, one, tuple(names), tuple(names.values()), filters)

    def side(self, names: set[str]) -> str | None:
        """Return the object that has all these variables: a or b; None if they are of both."""
        if names <= set(self.first):
            return "a"
        return "b" if names <= set(self.second) else None

    def first_of(self, node: tree.Node) -> tree.Node:
        """Return an expression with the variables of the second object renamed to the first's."""
        names = dict(zip(self.second, self.first, strict=True))
        return with_names(node, names)


def with_names(node: tree.Node, names: Mapping[str, str]) -> tree.Node:
    """Return a part of a query with some variables renamed."""

    def renamed(inner: tree.Node) -> tree.Node:
        if isinstance(inner, tree.Var) and inner.name in names:
            return tree.Var(names[inner.name])
        return inner

    return tree.rewrite_tree(node, renamed)


def objects_of(triples: Sequence[PlainTerms]) -> tuple[Object, Object] | None:
    """Return the patterns of the two objects of a pair; None if they describe one object.

    Two objects share no variable; or their patterns are equal up to the names of variables, and a
    shared variable has corresponding places in both.

    >>> from rsp_engine.grammar import parse
    >>> from rsp_engine.grammar.triples import plain_terms
    >>> def names(where):
    ...     pair = objects_of(plain_terms(parse(f"ASK {{ {where} }}").form.where.elements))
    ...     return pair and [[s.name + o.name for s, _, o in triples] for triples in pair]
    >>> names("?a <p> ?x . ?b <q> ?y . ?b <p> ?z")
    [['ax'], ['by', 'bz']]
    >>> names("?a <in> ?c . ?a <p> ?x . ?b <in> ?c . ?b <p> ?y")
    [['ac', 'ax'], ['bc', 'by']]
    >>> names("?a <in> ?c . ?a <p> ?x . ?c <p> ?y")
    """
    parts = _connected(triples)
    if len(parts) == 1:
        return _Matcher(triples).halves()
    if len(parts) != 2 or not all(map(_names, parts)):
        return None
    return parts[0], parts[1]


def _names(triples: Sequence[PlainTerms]) -> set[str]:
    return {term.name for triple in triples for term in triple if isinstance(term, tree.Var)}


def _connected(triples: Sequence[PlainTerms]) -> list[Object]:
    """Return the connected components of triple patterns, by shared variables."""
    parts: list[tuple[set[str], list[int]]] = []
    for number, triple in enumerate(triples):
        names = _names([triple])
        touching = [each for each in parts if each[0] & names]
        merged = (names.union(*(each[0] for each in touching)), [number])
        for each in touching:
            merged[1].extend(each[1])
            parts.remove(each)
        parts.append(merged)
    return [tuple(triples[n] for n in part) for part in sorted(sorted(part) for _, part in parts)]


class _Matcher:
    """Searches for two halves of triple patterns that are equal up to the names of variables."""

    def __init__(self, triples: Sequence[PlainTerms]) -> None:
        self._triples = triples

    def halves(self) -> tuple[Object, Object] | None:
        if len(self._triples) % 2:
            return None
        return next(self._search(tuple(range(len(self._triples))), (), (), {}), None)

    def _search(
        self,
        left: tuple[int, ...],
        one: tuple[int, ...],
        other: tuple[int, ...],
        names: Mapping[str, str],
    ) -> Iterator[tuple[Object, Object]]:
        """Yield the halves that extend `one` and `other` by the patterns that are `left`."""
        if not left:
            first, second = (tuple(self._triples[n] for n in sorted(half)) for half in (one, other))
            if _are_objects(first, second, names):
                yield first, second
            return
        here, *rest = left
        for place in rest:
            others = tuple(n for n in rest if n != place)
            for a, b in ((here, place), (place, here)):
                extended = _corresponding(self._triples[a], self._triples[b], names)
                if extended is not None:
                    yield from self._search(others, (*one, a), (*other, b), extended)


def _corresponding(
    left: PlainTerms, right: PlainTerms, names: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return the bijection of variables, extended by two patterns; None if it cannot be."""
    extended = dict(names)
    for one, other in zip(left, right, strict=True):
        if isinstance(one, tree.Var) and isinstance(other, tree.Var):
            if extended.setdefault(one.name, other.name) != other.name:
                return None
        elif one != other:
            return None
    return extended if len(set(extended.values())) == len(extended) else None


def _are_objects(first: Object, second: Object, names: Mapping[str, str]) -> bool:
    """Return whether halves differ, and share variables at corresponding places only."""
    shared = _names(first) & _names(second)
    is_one = all(len(_connected(half)) == 1 for half in (first, second))
    return is_one and len(shared) < len(names) and all(names[name] == name for name in shared)


def _renamed(one: Object, other: Object) -> Mapping[str, str] | None:
    """Return the variables of one object, each with the corresponding one of the other, if any."""
    names: Mapping[str, str] | None = {} if len(one) == len(other) else None
    for left, right in zip(one, other, strict=False):
        names = None if names is None else _corresponding(left, right, names)
    return names
