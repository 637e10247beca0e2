"""What stands beside a SERVICE clause, and so tells which of its keys a query needs.

A remote solution counts only if it agrees with what the clause is joined to. From that, this
module makes a group whose solutions hold every key that can count. It may hold more of them, but
never fewer:

    joined to the clause             kept, in order
    OPTIONAL or BIND before it       kept, where it sees what it saw in the query
    FILTER beside it                 kept, where all its variables have their values already
    MINUS, and OPTIONAL behind it    left out
    around an OPTIONAL or a MINUS    only what stands before that, in its own group
    around a sub-query               only what is projected, and nothing if the rows are cut

Another SERVICE clause is kept where its own data are there first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import group_keys, is_grouped
from rsp_engine.plan.variables import Element, certain_variables, named_variables, visible_variables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["Around", "Clause", "around", "given_to", "looked_into"]

_CHANCE = {"RAND", "UUID", "STRUUID", "BNODE"}


@dataclass(frozen=True, slots=True)
class Clause(tree.ServicePattern):
    """A SERVICE clause that has a number in its query."""

    number: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a group stands: the WINDOW or GRAPH that it is asked of, and whether in an EXISTS.

    EXISTS puts the values of a solution into its pattern.
    """

    within: tree.WindowPattern | tree.GraphPattern | None = None
    is_in_exists: bool = False


@dataclass(frozen=True, slots=True)
class _Level:
    """One group around a clause."""

    before: tuple[Element, ...]
    after: tuple[Element, ...]
    filters: tuple[tree.FilterClause, ...]
    place: _Place


@dataclass(frozen=True, slots=True)
class _Hidden:
    """The edge of a sub-query: of what is around it, only these variables are seen inside."""

    names: tuple[str, ...]


Around = tuple[_Level | _Hidden, ...]
"""The groups around a clause, from the outermost on."""


def around(query: tree.QueryUnit) -> dict[int, _Surroundings]:
    """Return, by their numbers, what is around the clauses of a query.

    Nothing is known of a clause that stands in an expression of SELECT, HAVING or ORDER BY.
    """
    found = {c.number: _Surroundings() for c in tree.find(query, Clause)}
    uses = _uses(query)
    where = query.form.where or tree.GroupPattern(())
    found.update(
        (number, _Surroundings(path, uses)) for number, path in _in_group(where, (), _Place())
    )
    return found


@dataclass(frozen=True, slots=True)
class _Surroundings:
    levels: Around = ()
    uses: Counter[str] = field(default_factory=Counter)

    def group(self, done: Collection[int]) -> tree.GroupPattern:
        """Return a group that holds every key that counts; `done` are clauses with data."""
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


def looked_into(query: tree.QueryUnit) -> Iterator[tuple[tree.ServicePattern, str]]:
    """Yield a clause in EXISTS with a variable that its conditions would get from outside.

    EXISTS puts the values of a solution into its pattern (SPARQL 1.1, section 18.6), and so into
    the conditions of a SERVICE. Its remote solutions would be others for each of them.
    """
    for exists in tree.find(query, tree.Exists):
        for service in tree.find(exists, tree.ServicePattern):
            yield from ((service, name) for name in given_to(service.group, query))


def given_to(group: tree.GroupPattern, query: tree.QueryUnit) -> list[str]:
    """Return variables of the query that conditions in a group need, and that it does not bind."""
    here, uses = _uses(group), _uses(query)
    free = set(here) - visible_variables(group) - _projected_away(group)
    return sorted(name for name in free if here[name] < uses[name])


def _projected_away(group: tree.GroupPattern) -> set[str]:
    """Return the variables of sub-queries, which nothing outside of these can see."""
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
    group: tree.GroupPattern, outside: Around, place: _Place
) -> Iterator[tuple[int, Around]]:
    """Yield the clauses in a group, each with what is around it."""
    filters = tuple(e for e in group.elements if isinstance(e, tree.FilterClause))
    for at, element in enumerate(group.elements):
        if not _clauses(element):
            continue
        before, after = group.elements[:at], group.elements[at + 1 :]
        joined = (*outside, _Level(before, after, filters, place))
        left = (_Level(before, (), filters, place),)
        match element:
            case Clause(number=number):
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
    expression: tree.Expression, path: Around, place: _Place
) -> Iterator[tuple[int, Around]]:
    """Yield the clauses in the patterns of EXISTS; these see the solution that is looked at."""
    waiting: list[tree.Node] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Exists):
            yield from _in_group(node.group, path, replace(place, is_in_exists=True))
        else:
            waiting.extend(tree.children(node))


def _seen_inside(select: tree.SubSelect) -> tuple[str, ...]:
    """Return the variables whose values are the same inside of a sub-query and outside."""
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
    """Yield what of a level tells keys: one group."""
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
        if _is_there(element, done) and sees & lost <= certain_variables(*kept) and not is_open:
            kept.append(element)
        else:
            lost |= visible_variables(element)
    after = [e for e in level.after if _is_joined(e) and _is_there(e, done)]
    kept += (e for e in after if not in_exists or _is_closed(e, uses))
    sure = certain_variables(*kept)
    kept += (f for f in level.filters if _is_there(f, ()) and _is_decided(f, sure, uses))
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


def _is_there(element: Element, done: Collection[int]) -> bool:
    """Tell whether an element can be evaluated, and twice with the same result."""
    calls = {call.name for call in tree.find(element, tree.BuiltInCall)}
    return not calls & _CHANCE and all(c.number in done for c in _clauses(element))


def _is_closed(element: Element, uses: Counter[str]) -> bool:
    """Tell whether what an element gives is the same with values put into it, or without.

    A variable that it always binds is joined with such a value, and one of its own has none.
    """
    here = _uses(element)
    return all(here[name] == uses[name] for name in set(here) - certain_variables(element))


def _is_decided(element: tree.FilterClause, sure: set[str], uses: Counter[str]) -> bool:
    """Tell whether a condition holds for what is kept if and only if it holds in the query.

    All its variables must have their values. One that is named inside of its EXISTS only is its
    own.
    """
    here = _uses(element)
    inner = [e.group for e in tree.find(element, tree.Exists)]
    inside = set[str]().union(*map(named_variables, inner))
    own = {name for name in inside if here[name] == uses[name]}
    return bool(sure) and set(here) - own <= sure


def _clauses(node: tree.Node) -> list[Clause]:
    return list(tree.find(node, Clause))
