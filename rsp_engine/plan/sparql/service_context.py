"""The context of a SERVICE clause: the patterns that determine which of its keys a query needs.

A remote solution contributes to the answer only if it is compatible with what the clause is joined
to. From the context, this module builds a group whose solutions contain every key that can
contribute. The group may give more keys, but never fewer:

    joined to the clause             kept, in order
    OPTIONAL or BIND before it       kept, if it sees the same variables as in the query
    FILTER next to it                kept, if all its variables are bound by what is kept
    MINUS, and OPTIONAL after it     left out
    around an OPTIONAL or a MINUS    only the elements before that, in the group that contains it
    around a sub-query               only projected variables, and none if the rows are cut

Another SERVICE clause is kept if its data are fetched before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import group_keys, is_grouped
from rsp_engine.plan.sparql.general import VOLATILE_FUNCTIONS
from rsp_engine.plan.variables import Element, certain_variables, named_variables, visible_variables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = [
    "NumberedService",
    "ServiceContext",
    "correlated_services",
    "correlated_variables",
    "service_contexts",
]

_RANDOM_FUNCTIONS = VOLATILE_FUNCTIONS - {"NOW"}  # NOW is constant within an evaluation


@dataclass(frozen=True, slots=True)
class NumberedService(tree.ServicePattern):
    """A SERVICE clause with its number in the query."""

    number: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a group: the WINDOW or GRAPH that it reads, and whether it is in an EXISTS.

    EXISTS substitutes the values of a solution into its pattern.
    """

    within: tree.WindowPattern | tree.GraphPattern | None = None
    is_in_exists: bool = False


@dataclass(frozen=True, slots=True)
class _Level:
    """One group around a clause: the elements before and after the clause, and its filters."""

    before: tuple[Element, ...]
    after: tuple[Element, ...]
    filters: tuple[tree.FilterClause, ...]
    place: _Place


@dataclass(frozen=True, slots=True)
class _Hidden:
    """The boundary of a sub-query: the outer variables that are visible inside."""

    names: tuple[str, ...]


_Levels = tuple[_Level | _Hidden, ...]
"""The groups around a clause, the outermost first."""


def service_contexts(query: tree.QueryUnit) -> dict[int, ServiceContext]:
    """Return the context of each clause of a query, by its number.

    A clause in an expression of SELECT, HAVING or ORDER BY has an empty context.
    """
    contexts = {c.number: ServiceContext() for c in tree.find(query, NumberedService)}
    uses = _uses(query)
    where = query.form.where or tree.GroupPattern(())
    contexts.update(
        (number, ServiceContext(path, uses)) for number, path in _in_group(where, (), _Place())
    )
    return contexts


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """The groups around a clause, and how often the query uses each variable."""

    levels: _Levels = ()
    uses: Counter[str] = field(default_factory=Counter)

    def group(self, done: Collection[int]) -> tree.GroupPattern:
        """Return a group that gives every key needed; `done` are the clauses with data."""
        elements: tuple[Element, ...] = ()
        for level in self.levels:
            if isinstance(level, _Level):
                elements += tuple(_kept(level, done, self.uses))
                continue
            names = [name for name in level.names if name in visible_variables(*elements)]
            clause = tree.SelectClause(tuple(map(tree.Var, names)), "DISTINCT")
            inner = tree.SubSelect(clause, tree.GroupPattern(elements), tree.Modifiers())
            elements = (tree.GroupPattern((inner,)),) if names else ()
        return tree.GroupPattern(elements)


def correlated_services(query: tree.QueryUnit) -> Iterator[tuple[tree.ServicePattern, str]]:
    """Yield each clause in EXISTS with each variable that its conditions take from outside.

    EXISTS substitutes the values of a solution into its pattern (SPARQL 1.1, section 18.6), and so
    into the conditions of a SERVICE. The remote solutions would differ for each solution.
    """
    for exists in tree.find(query, tree.Exists):
        for service in tree.find(exists, tree.ServicePattern):
            yield from ((service, name) for name in correlated_variables(service.group, query))


def correlated_variables(group: tree.GroupPattern, query: tree.QueryUnit) -> list[str]:
    """Return the variables in conditions of a group that only the query around it can bind."""
    here, uses = _uses(group), _uses(query)
    free = set(here) - visible_variables(group) - _projected_away(group)
    return sorted(name for name in free if here[name] < uses[name])


def _projected_away(group: tree.GroupPattern) -> set[str]:
    """Return the variables that occur in sub-queries only, where the group does not see them."""
    inner = set[str]().union(*map(named_variables, tree.find(group, tree.SubSelect)))
    return inner - {v.name for v in _plain_variables(group)}


def _plain_variables(node: tree.Node) -> Iterator[tree.Var]:
    if isinstance(node, tree.Var):
        yield node
    elif not isinstance(node, tree.SubSelect):
        for child in tree.children(node):
            yield from _plain_variables(child)


def _uses(node: tree.Node) -> Counter[str]:
    return Counter(variable.name for variable in tree.find(node, tree.Var))


def _in_group(
    group: tree.GroupPattern, outside: _Levels, place: _Place
) -> Iterator[tuple[int, _Levels]]:
    """Yield the number of each clause in a group, with the groups around it."""
    filters = tuple(e for e in group.elements if isinstance(e, tree.FilterClause))
    for at, element in enumerate(group.elements):
        if not _clauses(element):
            continue
        before, after = group.elements[:at], group.elements[at + 1 :]
        joined = (*outside, _Level(before, after, filters, place))
        left = (_Level(before, (), filters, place),)
        match element:
            case NumberedService(number=number):
                yield number, joined
            case tree.GroupPattern():
                yield from _in_group(element, joined, place)
            case tree.UnionPattern(groups):
                for inner in groups:
                    yield from _in_group(inner, joined, place)
            case tree.GraphPattern(_, inner) | tree.WindowPattern(_, inner):
                yield from _in_group(inner, joined, replace(place, within=element))
            case tree.SubSelect(_, inner):
                yield from _in_group(inner, (*joined, _Hidden(_seen_inside(element))), place)
            case tree.OptionalPattern(inner) | tree.MinusPattern(inner):
                yield from _in_group(inner, left, place)
            case tree.Bind(expression):
                yield from _in_expression(expression, left, place)
            case tree.FilterClause(condition):
                whole = tuple(e for e in group.elements if not isinstance(e, tree.FilterClause))
                path = (_Level(whole, (), filters, place),)
                yield from _in_expression(condition, path, place)
            case _:
                continue


def _in_expression(
    expression: tree.Expression, path: _Levels, place: _Place
) -> Iterator[tuple[int, _Levels]]:
    """Yield the clauses in the EXISTS patterns of an expression, which see the outer solution."""
    waiting: list[tree.Node] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Exists):
            yield from _in_group(node.group, path, replace(place, is_in_exists=True))
        else:
            waiting.extend(tree.children(node))


def _seen_inside(select: tree.SubSelect) -> tuple[str, ...]:
    """Return the variables that have the same values inside and outside of a sub-query."""
    modifiers = select.modifiers
    if modifiers.limit is not None or modifiers.offset is not None:
        return ()
    items = select.clause.items
    names = (
        {i.name for i in items if isinstance(i, tree.Var)}
        if items
        else visible_variables(select.where)
    )
    if is_grouped(select.clause, modifiers):
        names &= group_keys(modifiers)
    return tuple(sorted(names & visible_variables(select.where)))


def _kept(level: _Level, done: Collection[int], uses: Counter[str]) -> Iterator[Element]:
    """Yield the group of those elements of a level that restrict the keys, if there are any."""
    kept: list[Element] = []
    lost: set[str] = set()
    in_exists = level.place.is_in_exists
    for element in level.before:
        if isinstance(element, tree.FilterClause | tree.MinusPattern):
            continue
        sees = (
            named_variables(element)
            if isinstance(element, tree.OptionalPattern | tree.Bind)
            else set()
        )
        is_open = in_exists and not _is_closed(element, uses)
        if _is_available(element, done) and sees & lost <= certain_variables(*kept) and not is_open:
            kept.append(element)
        else:
            lost |= visible_variables(element)
    after = [e for e in level.after if _is_joined(e) and _is_available(e, done)]
    kept += (e for e in after if not in_exists or _is_closed(e, uses))
    sure = certain_variables(*kept)
    kept += (f for f in level.filters if _is_available(f, ()) and _is_decided(f, sure, uses))
    if not kept:
        return
    group = tree.GroupPattern(tuple(kept))
    match level.place.within:
        case tree.WindowPattern(name):
            yield tree.WindowPattern(name, group)
        case tree.GraphPattern(name):
            yield tree.GraphPattern(name, group)
        case None:
            yield group


def _is_joined(element: Element) -> bool:
    return not isinstance(
        element, tree.OptionalPattern | tree.MinusPattern | tree.Bind | tree.FilterClause
    )


def _is_available(element: Element, done: Collection[int]) -> bool:
    """Return whether an element can be evaluated, and repeatedly with the same result."""
    calls = {call.name for call in tree.find(element, tree.BuiltInCall)}
    return not calls & _RANDOM_FUNCTIONS and all(c.number in done for c in _clauses(element))


def _is_closed(element: Element, uses: Counter[str]) -> bool:
    """Return whether an element has the same solutions with and without substitution by EXISTS.

    Substitution of a variable that the element always binds is a join, and a variable that occurs
    in the element only has no value to substitute.
    """
    here = _uses(element)
    return all(here[name] == uses[name] for name in set(here) - certain_variables(element))


def _is_decided(element: tree.FilterClause, sure: set[str], uses: Counter[str]) -> bool:
    """Return whether a condition holds for the kept elements if and only if it does in the query.

    All its variables must be bound. A variable that occurs inside its EXISTS only is local to it.
    """
    here = _uses(element)
    inner = [e.group for e in tree.find(element, tree.Exists)]
    inside = set[str]().union(*map(named_variables, inner))
    own = {name for name in inside if here[name] == uses[name]}
    return bool(sure) and set(here) - own <= sure


def _clauses(node: tree.Node) -> list[NumberedService]:
    return list(tree.find(node, NumberedService))
