"""A case of the differential test, and what the engine must answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tests.differential import patterns as pt
from tests.differential.expressions import Var
from tests.differential.patterns import Dataset, Filter, Group, Service, TriplePattern, Window
from tests.differential.terms import Iri, Term, Triple, ex
from tests.differential.windows import (
    Count,
    Element,
    Evaluation,
    Setting,
    Streams,
    evaluations,
    set_aside,
)

if TYPE_CHECKING:
    from tests.differential.order import Place
    from tests.differential.queries import Row, Select, Times


@dataclass(frozen=True, slots=True)
class Case:
    """A query, its streams and its options.

    `options` are those of the engine that must not change the answer: the policy, and the like.
    """

    family: str
    seed: int
    select: Select
    setting: Setting
    streams: Streams
    services: Mapping[Iri, frozenset[Triple]] = field(default_factory=dict)
    match: Literal["window", "element"] = "window"
    arrivals: Literal["latest", "all"] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def query(self) -> str:
        """Return the text of the query."""
        head = f"PREFIX : <http://example.org/>\nREGISTER {self.setting.r2s} :q AS"
        return f"{head}\n{replace(self.select, datasets=self.setting.text()).text()}"

    @property
    def has_blank_nodes(self) -> bool:
        elements = (e for sources in self.streams.values() for s in sources for e in s)
        return any(pt.has_blank_nodes(element.triples) for element in elements)


Aside = Counter[tuple[str, str]]
Contents = Mapping[Iri, Sequence[Element]]


class Answer(NamedTuple):
    """The rows of an evaluation; where the query ranks, each with its rank and its score."""

    open: int
    close: int
    rows: tuple[Shown, ...]


class Shown(NamedTuple):
    rank: int | None
    bindings: Mapping[str, Term]
    score: Term | None
    places: tuple[Place, ...] = ()


def answers(case: Case) -> list[Answer]:
    """Return all answers of a case."""
    meant = _meant(case)
    before: list[Shown] = []
    found = []
    for evaluation in evaluations(case.setting, case.streams):
        rows = _shown(meant, _rows(case, meant, evaluation))
        leaving = {
            "RSTREAM": rows,
            "ISTREAM": _without(rows, before),
            "DSTREAM": _without(before, rows),
        }
        shown = tuple(leaving[case.setting.r2s])
        found.append(Answer(evaluation.open, evaluation.close, shown))
        before = rows
    return found


def aside(case: Case) -> Aside:
    """Return the elements that are set aside: the lines of each, and the reason."""
    found = set_aside(case.setting, case.streams)
    return Counter(("\n".join(element.lines()), reason) for element, reason in found)


def _shown(select: Select, rows: Sequence[Row]) -> list[Shown]:
    if not select.is_ranked:
        return [Shown(None, row.bindings, None) for row in rows]
    return [
        Shown(rank, row.bindings, row.score, row.places) for rank, row in enumerate(rows, start=1)
    ]


def _without(rows: Sequence[Shown], others: Sequence[Shown]) -> list[Shown]:
    """Return the rows that are left when each of the others takes the first equal one away."""
    taken = Counter(frozenset(row.bindings.items()) for row in others)
    left = []
    for row in rows:
        bindings = frozenset(row.bindings.items())
        if taken[bindings]:
            taken[bindings] -= 1
        else:
            left.append(row)
    return left


def _rows(case: Case, meant: Select, evaluation: Evaluation) -> list[Row]:
    names = [ex(window.name) for window in case.setting.windows]
    contents = dict(zip(names, evaluation.contents, strict=True))
    graphs = {name: [e.triples for e in content] for name, content in contents.items()}
    # Objects of one triple each come from one element anyway.
    is_pair = meant.is_ranked and meant.pair is not None and len(meant.pair[0].elements) == 1
    data = Dataset(graphs, case.services, by_element=case.match == "element" and not is_pair)
    return meant.rows(data, _times(case, meant, contents), _keys(case, meant))


def _times(case: Case, select: Select, contents: Contents) -> Times | None:
    """Return when each solution of the only window came last, in one element, if that counts.

    In a window that counts, elements have numbers: the one that counts later came later.
    """
    most = 1 if case.match == "window" or select.is_grouped else len(select.patterns)
    if select.pair is None and not 1 <= len(select.patterns) <= most:
        return None
    [window] = [w for w in case.setting.windows if ex(w.name) == select.window_name]
    times: dict[frozenset[tuple[str, Term]], int] = {}
    for number, element in enumerate(contents[ex(window.name)]):
        came = number if isinstance(window, Count) else element.timestamp
        data = Dataset({}, case.services, active=element.triples)
        for solution in (s for block in select.blocks for s in pt.solutions(block, data)):
            key = frozenset(solution.items())
            times[key] = max(times.get(key, came), came)
    return times


def _keys(case: Case, select: Select) -> list[str]:
    """Return the variables of the join, if of its arrivals only the latest counts.

    It does in ranked queries with one SERVICE, unless all arrivals are asked for. Groups have all
    their solutions.
    """
    services = [e for e in select.where.elements if isinstance(e, Service)]
    is_latest = select.is_ranked and not select.is_grouped and case.arrivals != "all"
    if not is_latest or len(services) != 1:
        return []
    remote = set(pt.variables(services[0]))
    return [name for name in select.streamed if name in remote]


def _meant(case: Case) -> Select:
    """Return what a ranked query of pairs means where each object comes in one element."""
    select = case.select
    windows = [e for e in select.where.elements if isinstance(e, Window)]
    outside = tuple(e for e in select.where.elements if isinstance(e, Filter))
    is_one_block = len(windows) == 1 and len(windows) + len(outside) == len(select.where.elements)
    is_meant = case.match == "window" or not select.is_ranked or not is_one_block
    if is_meant or select.pair is not None:
        return select
    [window] = windows
    inside = window.group.elements
    triples = [e for e in inside if isinstance(e, TriplePattern)]
    filters = [e for e in inside if isinstance(e, Filter)]
    if len(triples) + len(filters) < len(inside):
        return select
    halves = halves_of(triples)
    if halves is None:
        return select
    both = tuple(Window(window.name, Group(half)) for half in halves)
    return replace(select, where=Group((*both, *filters, *outside)))


Half = tuple[TriplePattern, ...]


def halves_of(triples: Sequence[TriplePattern]) -> tuple[Half, Half] | None:
    """Return the two objects of a pair: parts without a common variable, or parts that are alike.

    Parts that are alike have the same triples but for the names of variables, and share variables
    at corresponding places only.
    """
    parts = list(_components(triples))
    if len(parts) == 2:
        return parts[0], parts[1]
    if len(parts) > 2 or len(triples) % 2:
        return None
    middle = len(triples) // 2
    first, second = tuple(triples[:middle]), tuple(triples[middle:])
    return (first, second) if _are_alike(first, second) else None


def _components(triples: Sequence[TriplePattern]) -> Iterator[Half]:
    left = list(triples)
    while left:
        names: set[str] = set()
        part = [left[0]]
        while True:
            names = {name for triple in part for name in pt.variables(triple)}
            more = [t for t in left if t not in part and names & set(pt.variables(t))]
            if not more:
                break
            part += more
        yield tuple(t for t in left if t in part)
        left = [t for t in left if t not in part]


def _are_alike(first: Half, second: Half) -> bool:
    renamed: dict[str, str] = {}
    for one, other in zip(first, second, strict=True):
        for left, right in zip(one.slots, other.slots, strict=True):
            if isinstance(left, Var) and isinstance(right, Var):
                if renamed.setdefault(left.name, right.name) != right.name:
                    return False
            elif left != right:
                return False
    shared = renamed.keys() & set(renamed.values())
    is_one_to_one = len(set(renamed.values())) == len(renamed)
    return is_one_to_one and all(renamed[name] == name for name in shared)
