"""Patterns of a query: their text, and their solutions, found by nested loops.

A solution maps variables to terms, and solutions are a bag: a list. `WINDOW :w { P }` evaluates P
over the content of a window: the triples of all elements as one graph or, with `match="element"`,
each element alone. Then the multiplicity of a solution is the largest that one element gives it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.differential import expressions as ex
from tests.differential.expressions import Constant, Expression, Solution, Var
from tests.differential.terms import Blank, Iri, Literal, Term, Triple, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.differential.queries import Select

Slot = Var | Iri | Literal
"""What may stand in a triple pattern."""


@dataclass(frozen=True, slots=True)
class TriplePattern:
    subject: Slot
    predicate: Slot
    object: Slot

    @property
    def slots(self) -> tuple[Slot, Slot, Slot]:
        return self.subject, self.predicate, self.object


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression


@dataclass(frozen=True, slots=True)
class Exists:
    """A filter: whether a pattern has a solution beside this one, or has none."""

    group: Group
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Bind:
    expression: Expression
    variable: str


@dataclass(frozen=True, slots=True)
class Optional:
    group: Group


@dataclass(frozen=True, slots=True)
class Union:
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Minus:
    group: Group


@dataclass(frozen=True, slots=True)
class Window:
    name: Iri | Var
    group: Group


@dataclass(frozen=True, slots=True)
class Service:
    name: Iri
    group: Group


@dataclass(frozen=True, slots=True)
class SubSelect:
    select: Select


@dataclass(frozen=True, slots=True)
class Group:
    """Patterns from left to right; filters hold for all of them."""

    elements: tuple[Pattern, ...]


Pattern = (
    TriplePattern | Filter | Exists | Bind | Optional | Union | Minus | Window | Service | SubSelect
    | Group
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dataset:
    """What patterns are matched over.

    `windows` has the elements of each window, as sets of triples. `active` is the graph that triple
    patterns read.
    """

    windows: Mapping[Iri, Sequence[frozenset[Triple]]]
    services: Mapping[Iri, frozenset[Triple]]
    by_element: bool = False
    active: frozenset[Triple] = frozenset()

    def reading(self, graph: frozenset[Triple]) -> Dataset:
        return Dataset(self.windows, self.services, self.by_element, graph)


def group_of(*elements: Pattern) -> Group:
    return Group(elements)


def text(pattern: Pattern) -> str:
    """Return a pattern as RSP-QL."""
    match pattern:
        case TriplePattern():
            return " ".join(map(_slot_text, pattern.slots)) + " ."
        case Filter(condition):
            return f"FILTER ({ex.text(condition)})"
        case Exists(group, is_negated):
            return f"FILTER {'NOT ' if is_negated else ''}EXISTS {text(group)}"
        case Bind(expression, variable):
            return f"BIND ({ex.text(expression)} AS ?{variable})"
        case Optional(group):
            return f"OPTIONAL {text(group)}"
        case Union(groups):
            return " UNION ".join(map(text, groups))
        case Minus(group):
            return f"MINUS {text(group)}"
        case Window(name, group):
            return f"WINDOW {_slot_text(name)} {text(group)}"
        case Service(name, group):
            return f"SERVICE {_slot_text(name)} {text(group)}"
        case SubSelect(select):
            return f"{{ {select.text()} }}"
        case Group(elements):
            return "{ " + " ".join(map(text, elements)) + " }"


def _slot_text(slot: Slot) -> str:
    if isinstance(slot, Iri):
        return _short(slot)
    return ex.text(slot if isinstance(slot, Var) else Constant(slot))


def _short(iri: Iri) -> str:
    name = iri.value.removeprefix("http://example.org/")
    return f":{name}" if name.isalnum() else written(iri)


def solutions(pattern: Pattern, data: Dataset) -> list[Solution]:
    """Return the solutions of a pattern that stands by itself."""
    match pattern:
        case TriplePattern():
            return list(_matches(pattern, data.active))
        case Group(elements):
            return _of_group(elements, data)
        case Union(groups):
            return [solution for group in groups for solution in solutions(group, data)]
        case Window(name, group):
            return list(_of_window(name, group, data))
        case Service(name, group):
            return solutions(group, data.reading(data.services[name]))
        case SubSelect(select):
            return select.solutions(data)
        case _:
            raise AssertionError(f"{pattern} stands beside others")


def _matches(pattern: TriplePattern, graph: frozenset[Triple]) -> Iterator[Solution]:
    for triple in sorted(graph, key=lambda t: tuple(map(written, t))):
        found = _match(pattern, triple)
        if found is not None:
            yield found


def _match(pattern: TriplePattern, triple: Triple) -> Solution | None:
    found: dict[str, Term] = {}
    for slot, term in zip(pattern.slots, triple, strict=True):
        if isinstance(slot, Var):
            if found.setdefault(slot.name, term) != term:
                return None
        elif slot != term:
            return None
    return found


def filled(pattern: TriplePattern, solution: Solution) -> Triple:
    """Return the triple that gives a pattern a solution."""
    subject, predicate, thing = (
        solution[slot.name] if isinstance(slot, Var) else slot for slot in pattern.slots
    )
    assert isinstance(predicate, Iri)
    return subject, predicate, thing


def _of_group(elements: Iterable[Pattern], data: Dataset) -> list[Solution]:
    found: list[Solution] = [{}]
    filters: list[Filter | Exists] = []
    for element in elements:
        match element:
            case Filter() | Exists():
                filters.append(element)
            case Bind(expression, variable):
                found = [_extended(s, variable, ex.value(expression, s)) for s in found]
            case Optional(group):
                found = list(_left_joined(found, group, data))
            case Minus(group):
                others = solutions(group, data)
                found = [s for s in found if not any(_removes(o, s) for o in others)]
            case _:
                found = joined(found, solutions(element, data))
    return [s for s in found if all(_passes(each, s, data) for each in filters)]


def _extended(solution: Solution, variable: str, term: Term | None) -> Solution:
    return solution if term is None else {**solution, variable: term}


def are_compatible(one: Solution, other: Solution) -> bool:
    return all(other.get(name, term) == term for name, term in one.items())


def joined(left: Iterable[Solution], right: Sequence[Solution]) -> list[Solution]:
    return [{**one, **other} for one in left for other in right if are_compatible(one, other)]


def _left_joined(left: Iterable[Solution], group: Group, data: Dataset) -> Iterator[Solution]:
    """Yield what OPTIONAL gives: its filters see the variables of both sides."""
    filters = [e for e in group.elements if isinstance(e, Filter | Exists)]
    others = tuple(e for e in group.elements if not isinstance(e, Filter | Exists))
    right = _of_group(others, data)
    for solution in left:
        found = [s for s in joined([solution], right) if all(_passes(f, s, data) for f in filters)]
        yield from found or [solution]


def _removes(other: Solution, solution: Solution) -> bool:
    return bool(other.keys() & solution.keys()) and are_compatible(other, solution)


def _passes(element: Filter | Exists, solution: Solution, data: Dataset) -> bool:
    match element:
        case Filter(condition):
            return ex.holds(condition, solution)
        case Exists(group, is_negated):
            found = any(are_compatible(s, solution) for s in solutions(group, data))
            return found != is_negated


def _of_window(name: Iri | Var, group: Group, data: Dataset) -> Iterator[Solution]:
    if isinstance(name, Iri):
        yield from _in_content(group, data.windows[name], data)
        return
    for window, content in data.windows.items():
        yield from joined([{name.name: window}], _in_content(group, content, data))


def _in_content(
    group: Group, elements: Sequence[frozenset[Triple]], data: Dataset
) -> list[Solution]:
    if not data.by_element:
        return solutions(group, data.reading(frozenset().union(*elements)))
    most: Counter[frozenset[tuple[str, Term]]] = Counter()
    for element in elements:
        most |= Counter(frozenset(s.items()) for s in solutions(group, data.reading(element)))
    return [dict(solution) for solution in most.elements()]


def variables(pattern: Pattern) -> list[str]:
    """Return the variables of triple patterns, in the order in which they first appear."""
    found: list[str] = []
    match pattern:
        case TriplePattern():
            found = [slot.name for slot in pattern.slots if isinstance(slot, Var)]
        case Group(elements):
            found = [name for element in elements for name in variables(element)]
        case Optional(group) | Window(_, group) | Service(_, group):
            found = variables(group)
        case Union(groups):
            found = [name for group in groups for name in variables(group)]
        case _:
            pass
    return list(dict.fromkeys(found))


def has_blank_nodes(triples: Iterable[Triple]) -> bool:
    return any(isinstance(term, Blank) for triple in triples for term in triple)
