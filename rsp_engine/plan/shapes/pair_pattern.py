"""The two objects of a pair in a query: patterns that are the same but for their variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.grammar.triples import plain_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.grammar.triples import PlainTerms

__all__ = ["NotAlikeError", "NotPairsError", "PairPattern", "objects_of", "with_names"]

Object = tuple["PlainTerms", ...]
"""The triple patterns of one of the two objects of a pair."""


class NotPairsError(Exception):
    """Why a query is not one of pairs."""


class NotAlikeError(NotPairsError):
    """The patterns of a query are two, but not the same."""


@dataclass(frozen=True, slots=True)
class PairPattern:
    """The patterns of the first and the second object, and their variables, one by one."""

    window: tree.WindowPattern
    triples: Object
    first: tuple[str, ...]
    second: tuple[str, ...]

    @classmethod
    def of(cls, query: tree.QueryUnit) -> PairPattern:
        """Return the halves of a query, or raise why it has none."""
        select = query.form
        if not isinstance(select, tree.SelectForm):
            raise NotPairsError("only a SELECT can rank")
        if len(query.windows) != 1:
            raise NotPairsError("pairs are of exactly one window")
        elements = [e for e in select.where.elements if not isinstance(e, tree.FilterClause)]
        if query.values is not None or len(elements) != 1:
            raise NotPairsError("only filters may stand beside the WINDOW of pairs")
        [window] = elements
        if not isinstance(window, tree.WindowPattern) or not isinstance(window.name, tree.Iri):
            raise NotPairsError("pairs are of exactly one WINDOW clause")
        inside = [e for e in window.group.elements if not isinstance(e, tree.FilterClause)]
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

    return tree.rewrite_tree(node, renamed)


def objects_of(triples: Sequence[PlainTerms]) -> tuple[Object, Object] | None:
    """Return the patterns of the two objects of a pair, or nothing if they are of one object.

    Two objects have no variable in common; or they are the same but for the names of variables, and
    those that they have in common stand at corresponding places.

    >>> from rsp_engine.grammar import parse
    >>> def names(where):
    ...     found = objects_of(plain_terms(parse(f"ASK {{ {where} }}").form.where.elements))
    ...     return found and [[s.name + o.name for s, _, o in triples] for triples in found]
    >>> names("?a <p> ?x . ?b <q> ?y . ?b <p> ?z")
    [['ax'], ['by', 'bz']]
    >>> names("?a <in> ?c . ?a <p> ?x . ?b <in> ?c . ?b <p> ?y")
    [['ac', 'ax'], ['bc', 'by']]
    >>> names("?a <in> ?c . ?a <p> ?x . ?c <p> ?y")
    """
    found = _connected(triples)
    if len(found) == 1:
        return _Alike(triples).halves()
    if len(found) != 2 or not all(map(_names, found)):
        return None
    return found[0], found[1]


def _names(triples: Sequence[PlainTerms]) -> set[str]:
    return {term.name for triple in triples for term in triple if isinstance(term, tree.Var)}


def _connected(triples: Sequence[PlainTerms]) -> list[Object]:
    """Return the sets of triple patterns that have no variable in common with others."""
    found: list[tuple[set[str], list[int]]] = []
    for number, triple in enumerate(triples):
        names = _names([triple])
        touching = [each for each in found if each[0] & names]
        joined = (names.union(*(each[0] for each in touching)), [number])
        for each in touching:
            joined[1].extend(each[1])
            found.remove(each)
        found.append(joined)
    return [tuple(triples[n] for n in part) for part in sorted(sorted(part) for _, part in found)]


class _Alike:
    """Looks for two halves of triple patterns that are the same but for the names of variables."""

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
        """Yield the halves that begin with these patterns, where names correspond like this."""
        if not left:
            first, second = (tuple(self._triples[n] for n in sorted(half)) for half in (one, other))
            if _are_objects(first, second, names):
                yield first, second
            return
        here, *rest = left
        for place in rest:
            others = tuple(n for n in rest if n != place)
            for a, b in ((here, place), (place, here)):
                more = _corresponding(self._triples[a], self._triples[b], names)
                if more is not None:
                    yield from self._search(others, (*one, a), (*other, b), more)


def _corresponding(
    left: PlainTerms, right: PlainTerms, names: Mapping[str, str]
) -> Mapping[str, str] | None:
    """Return the names of variables that correspond if two patterns do; nothing if they do not."""
    found = dict(names)
    for one, other in zip(left, right, strict=True):
        if isinstance(one, tree.Var) and isinstance(other, tree.Var):
            if found.setdefault(one.name, other.name) != other.name:
                return None
        elif one != other:
            return None
    return found if len(set(found.values())) == len(found) else None


def _are_objects(first: Object, second: Object, names: Mapping[str, str]) -> bool:
    """Tell whether halves share variables at corresponding places only, and are not the same."""
    shared = _names(first) & _names(second)
    is_one = all(len(_connected(half)) == 1 for half in (first, second))
    return is_one and len(shared) < len(names) and all(names[name] == name for name in shared)


def _components(triples: Sequence[PlainTerms]) -> tuple[Object, Object]:
    """Return the two sets of triple patterns that have no variable in common."""
    found = _connected(triples)
    if len(found) != 2:
        raise NotPairsError("the window has not two patterns without a variable in common")
    return found[0], found[1]


def _renamed(one: Object, other: Object) -> dict[str, str]:
    """Return the variables of one pattern, each with that of the other in its place."""
    names: Mapping[str, str] | None = {} if len(one) == len(other) else None
    for left, right in zip(one, other, strict=False):
        names = None if names is None else _corresponding(left, right, names)
    if names is None:
        raise NotAlikeError("the two patterns differ in more than the names of variables")
    return dict(names)
