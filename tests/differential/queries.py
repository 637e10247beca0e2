"""SELECT queries: their text, and their rows over a dataset.

Ties that the conditions of ORDER BY leave are broken:

    ranked, one triple pattern    the later event time first, then the larger solution by the text
                                  of the pattern's variables; for groups, the latest event time of
                                  their solutions, then the larger key
    ranked, several patterns      the same, where each solution is of one element; not for groups
    ranked pairs that are alike   the pair whose later object is later, then that whose other one is
    any other order               by the projected variables, ascending
    no order                      by the text of the row
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.differential import expressions as ex
from tests.differential import patterns as pt
from tests.differential.expressions import Expression, Solution, Var
from tests.differential.order import Place, full_place, place
from tests.differential.patterns import (
    Dataset,
    Filter,
    Group,
    TriplePattern,
    Window,
    group_of,
)
from tests.differential.terms import Iri, Term, written


@dataclass(frozen=True, slots=True)
class Named:
    """An expression with a name: `(?v + 1 AS ?more)`."""

    expression: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Order:
    expression: Expression
    descending: bool = False

    def text(self) -> str:
        return f"{'DESC' if self.descending else 'ASC'}({ex.text(self.expression)})"


@dataclass(frozen=True, slots=True)
class Row:
    """A row, the value of the first condition of ORDER BY, and the places by all conditions."""

    bindings: Mapping[str, Term]
    score: Term | None = None
    places: tuple[Place, ...] = ()


class _Ranked(NamedTuple):
    """A solution with all its names, and the solutions of its group, which may be itself."""

    solution: Solution
    group: Sequence[Solution]


Times = Mapping[frozenset[tuple[str, Term]], int]
"""When each solution of the window came last: the time of the latest element that gives it."""


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT, with what is projected in order."""

    projection: tuple[str | Named, ...]
    where: Group
    group_by: tuple[str | Named, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    is_star: bool = False
    """Whether it is written `SELECT *`; the projection must have all variables, by name."""
    datasets: str = field(default="", compare=False)
    """The clauses FROM NAMED WINDOW, of the query that is registered."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p if isinstance(p, str) else p.name for p in self.projection)

    @property
    def is_ranked(self) -> bool:
        return bool(self.order_by) and self.limit is not None

    @property
    def is_grouped(self) -> bool:
        named = [p.expression for p in self.projection if isinstance(p, Named)]
        return bool(self.group_by) or any(map(ex.has_aggregate, named))

    def text(self) -> str:
        """Return the query as RSP-QL."""
        shown = "*" if self.is_star else _items(self.projection)
        parts = [f"SELECT {'DISTINCT ' if self.distinct else ''}{shown}"]
        parts += [self.datasets] if self.datasets else []
        parts.append(f"WHERE {pt.text(self.where)}")
        if self.group_by:
            parts.append(f"GROUP BY {_items(self.group_by)}")
        if self.having:
            parts.append("HAVING " + " ".join(f"({ex.text(each)})" for each in self.having))
        if self.order_by:
            parts.append("ORDER BY " + " ".join(order.text() for order in self.order_by))
        parts += [f"LIMIT {self.limit}"] if self.limit is not None else []
        parts += [f"OFFSET {self.offset}"] if self.offset else []
        return "\n".join(parts) if self.datasets else " ".join(parts)

    def solutions(self, data: Dataset) -> list[Solution]:
        """Return the solutions of a sub-query."""
        return [row.bindings for row in self.rows(data)]

    def rows(
        self, data: Dataset, times: Times | None = None, keys: Sequence[str] = ()
    ) -> list[Row]:
        """Return the rows in order.

        `times` are those of the solutions of the only window. Of these solutions, those that agree
        in the `keys` of a join, only the latest counts.
        """
        found = pt.solutions(self.where, data)
        if keys:
            assert times is not None, "the latest arrival is known by its time"
            latest = {_frozen(s) for s in self._latest(data, times, keys)}
            found = [s for s in found if _frozen(self._streamed(s)) in latest]
        ranked = list(self._grouped(found) if self.is_grouped else _alone(self._extended(found)))
        self._sort(ranked, times)
        rows = [Row(self._projected(r.solution), self._score(r), self._places(r)) for r in ranked]
        if self.distinct:
            first: dict[object, Row] = {}
            for row in rows:
                first.setdefault(_frozen(row.bindings), row)
            rows = list(first.values())
        end = None if self.limit is None else self.offset + self.limit
        return rows[self.offset : end]

    @property
    def block(self) -> Window | None:
        """The only WINDOW, if there is nothing beside it but filters and at most one SERVICE."""
        beside = [e for e in self.where.elements if not isinstance(e, Filter)]
        windows = [e for e in beside if isinstance(e, Window) and isinstance(e.name, Iri)]
        services = [e for e in beside if isinstance(e, pt.Service)]
        is_alone = len(windows) == 1 and len(services) <= 1 and len(beside) == 1 + len(services)
        return windows[0] if is_alone else None

    @property
    def blocks(self) -> list[Group]:
        """What the solutions are made of that have a time: the only window, or the two objects."""
        if self.pair is not None:
            return list(self.pair)
        return [] if self.block is None else [self.block.group]

    @property
    def pair(self) -> tuple[Group, Group] | None:
        """The two objects of a pair, if they are alike and have no variable in common.

        They are two patterns of the only window, or two windows that are the same.
        """
        if self.is_grouped:
            return None
        beside = [e for e in self.where.elements if not isinstance(e, Filter)]
        match beside:
            case [Window(name=one), Window(name=other)] if one == other:
                halves = [_patterns(window.group) for window in beside]  # type: ignore[union-attr]
            case [Window(group=group)] if self.block is not None and len(_patterns(group)) == 2:
                halves = [[pattern] for pattern in _patterns(group)]
            case _:
                return None
        first, second = halves
        is_apart = not _names(first) & _names(second)
        are_alike = len(first) == len(second) and all(map(_are_alike, first, second))
        return (group_of(*first), group_of(*second)) if is_apart and are_alike else None

    @property
    def window_name(self) -> Iri | None:
        """The name of the only window that solutions with a time are of."""
        if self.block is None and self.pair is None:
            return None
        windows = [e for e in self.where.elements if isinstance(e, Window)]
        assert isinstance(windows[0].name, Iri)
        return windows[0].name

    @property
    def patterns(self) -> list[TriplePattern]:
        """The triple patterns of the only window, if it has nothing beside them but filters."""
        return [] if self.block is None else _patterns(self.block.group)

    @property
    def streamed(self) -> list[str]:
        """The variables of the only window, in the order in which they first appear."""
        return [] if self.block is None else pt.variables(self.block)

    def _streamed(self, solution: Solution) -> Solution:
        return {name: solution[name] for name in self.streamed if name in solution}

    def _latest(self, data: Dataset, times: Times, keys: Sequence[str]) -> list[Solution]:
        """Return the solutions of the stream, of each join key the latest one."""
        stream = [
            element
            for element in self.where.elements
            if isinstance(element, Window)
            or (isinstance(element, Filter) and _is_over(element, self.streamed))
        ]
        found: dict[tuple[Term, ...], Solution] = {}
        arrived = pt.solutions(Group(tuple(stream)), data)
        for solution in sorted(arrived, key=lambda s: self._arrival(_Ranked(s, [s]), times)):
            found[tuple(solution[key] for key in keys)] = solution
        return list(found.values())

    def _arrival(self, ranked: _Ranked, times: Times) -> tuple[int, list[str]]:
        """Return the latest event time, and the text of the solution, or of the key of the group.

        Of a join, the solution and the key are those of the stream.
        """
        came = (times[_frozen(self._streamed(solution))] for solution in ranked.group)
        names = self.streamed
        if self.is_grouped:
            remote = {n for e in self.where.elements for n in _remote(e)} - set(names)
            keys = [by if isinstance(by, str) else by.name for by in self.group_by]
            names = [key for key in keys if key not in remote]
        texts = [written(ranked.solution.get(name)) for name in names]
        return max(came, default=0), texts

    def _arrivals(self, solution: Solution, times: Times) -> list[tuple[int, list[str]]]:
        """Return the event times and the texts of both objects of a pair, the later one first."""
        found = []
        for part in self.pair or ():
            own = {name: solution[name] for name in pt.variables(part)}
            found.append((times[_frozen(own)], list(map(written, own.values()))))
        return sorted(found, reverse=True)

    def _grouped(self, found: Sequence[Solution]) -> Iterator[_Ranked]:
        """Yield a solution for each group that HAVING keeps: the keys and what has a name."""
        groups: dict[tuple[Term | None, ...], list[Solution]] = {}
        for solution in found:
            key = tuple(_term(by, solution) for by in self.group_by)
            groups.setdefault(key, []).append(solution)
        if not self.group_by:
            groups.setdefault((), [])
        names = [by if isinstance(by, str) else by.name for by in self.group_by]
        for key, group in groups.items():
            kept = {n: t for n, t in zip(names, key, strict=True) if t is not None}
            if all(ex.holds(condition, kept, group) for condition in self.having):
                for item in self.projection:
                    if isinstance(item, Named):
                        kept = _with(kept, item.name, ex.value(item.expression, kept, group))
                yield _Ranked(kept, group)

    def _extended(self, found: Sequence[Solution]) -> Iterator[Solution]:
        for solution in found:
            kept = dict(solution)
            for item in self.projection:
                if isinstance(item, Named):
                    kept = _with(kept, item.name, ex.value(item.expression, kept))
            yield kept

    def _projected(self, solution: Solution) -> Solution:
        return {name: solution[name] for name in self.names if name in solution}

    def _value(self, order: Order, ranked: _Ranked) -> Term | None:
        group = ranked.group if self.is_grouped else None
        return ex.value(order.expression, ranked.solution, group)

    def _places(self, ranked: _Ranked) -> tuple[Place, ...]:
        return tuple(place(self._value(order, ranked)) for order in self.order_by)

    def _score(self, ranked: _Ranked) -> Term | None:
        return self._value(self.order_by[0], ranked) if self.is_ranked else None

    def _sort(self, ranked: list[_Ranked], times: Times | None) -> None:
        """Sort by the last that decides first: sorting keeps the order of what is equal."""
        if not self.order_by:
            ranked.sort(key=lambda r: [written(r.solution.get(name)) for name in self.names])
            return
        ranked.sort(key=lambda r: [full_place(r.solution.get(name)) for name in self.names])
        if times is not None and self.is_ranked and self.pair is not None:
            ranked.sort(key=lambda r: self._arrivals(r.solution, times), reverse=True)
        elif times is not None and self.is_ranked:
            ranked.sort(key=lambda r: self._arrival(r, times), reverse=True)
        for order in reversed(self.order_by):
            places = {id(r): place(self._value(order, r)) for r in ranked}
            ranked.sort(key=lambda r, places=places: places[id(r)], reverse=order.descending)  # type: ignore[misc]


def _are_alike(one: TriplePattern, other: TriplePattern) -> bool:
    """Tell whether two patterns without a variable in common differ in the names of these only."""
    places = [[isinstance(slot, Var) or slot for slot in each.slots] for each in (one, other)]
    names = [[each.slots.index(slot) for slot in each.slots] for each in (one, other)]
    return places[0] == places[1] and names[0] == names[1]


def _patterns(group: Group) -> list[TriplePattern]:
    """Return the triple patterns of a group that has nothing beside them but filters."""
    inside = [e for e in group.elements if not isinstance(e, Filter)]
    found = [e for e in inside if isinstance(e, TriplePattern)]
    return found if len(found) == len(inside) else []


def _names(patterns: Sequence[TriplePattern]) -> set[str]:
    return {name for pattern in patterns for name in pt.variables(pattern)}


def _is_over(element: Filter, names: Sequence[str]) -> bool:
    return ex.variables(element.condition) <= set(names)


def _remote(element: pt.Pattern) -> list[str]:
    return pt.variables(element) if isinstance(element, pt.Service) else []


def _alone(found: Iterator[Solution]) -> Iterator[_Ranked]:
    return (_Ranked(solution, [solution]) for solution in found)


def _frozen(solution: Solution) -> frozenset[tuple[str, Term]]:
    return frozenset(solution.items())


def _with(solution: dict[str, Term], name: str, term: Term | None) -> dict[str, Term]:
    return solution if term is None else {**solution, name: term}


def _term(item: str | Named, solution: Solution) -> Term | None:
    return ex.value(Var(item) if isinstance(item, str) else item.expression, solution)


def _items(items: Sequence[str | Named]) -> str:
    return " ".join(
        f"?{i}" if isinstance(i, str) else f"({ex.text(i.expression)} AS ?{i.name})" for i in items
    )
