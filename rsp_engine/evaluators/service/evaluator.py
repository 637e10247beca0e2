"""One evaluation of a general query with SERVICE clauses (WSJ in ACQUA).

    windows moved -> keys asked for -> replica refreshed -> graphs kept in step -> query asked

Each clause has a graph in the store with the remote solutions of the keys that the evaluation
needs. Only the solutions of keys that come, go or change are touched.

A general query has no scores, so all keys have the same, and ties are broken by the key. How long
a key will stay in the window is not looked up: all count as if they had come with the last pane.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyoxigraph as ox

from rsp_engine.evaluators.service.refresh import failure_stats
from rsp_engine.evaluators.service.required_keys import RequiredKeys, RequiredKeysQuery
from rsp_engine.evaluators.sparql import SparqlEvaluator
from rsp_engine.model.candidates import Candidates
from rsp_engine.model.windows import TimeFrame
from rsp_engine.operators.sparql.projector import variable_iri
from rsp_engine.operators.windows.insertion_order import InsertionOrder
from rsp_engine.replica.endpoints.endpoint import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.service.config import ServiceClause, ServiceConfig
    from rsp_engine.evaluators.service.refresh import Refresh, RefreshReport
    from rsp_engine.evaluators.service.service_plan import ServiceOptions
    from rsp_engine.model.answers import Boolean, Graph, Solutions
    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.model.windows import CountFrame
    from rsp_engine.operators.windows.scan import Scan
    from rsp_engine.replica.pattern import Key, RemotePattern, RemoteSolution

__all__ = ["ServiceEvaluator", "ServiceGraph"]

_MARK = ox.Literal("true", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#boolean"))


class ServiceEvaluator:
    """Evaluates a query whose SERVICE clauses read replicas."""

    def __init__(
        self,
        config: ServiceConfig,
        store: ox.Store,
        plan: PhysicalPlan,
        refreshes: Sequence[Refresh],
    ) -> None:
        self._general = SparqlEvaluator(config, store, [scan.window for scan in plan.scans])
        self._frames = [scan.frame for scan in plan.scans]
        served = zip(config.clauses, refreshes, strict=True)
        self._clauses = [_Served(clause, refresh, self._general) for clause, refresh in served]
        self._before: int | None = None
        self._stats: dict[str, Any] = {}

    @property
    def may_give_blank_nodes(self) -> bool:
        return self._general.may_give_blank_nodes

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the content of the scans and the replicas, at an instant."""
        self._general.move(scans)
        pace = self._pace(now)
        allowance = _Allowance(self._clauses[0].options, len(self._clauses))
        told = _Told()
        for clause in self._clauses:
            clause.begin(min(scan.interval().open for scan in scans))
            clause.bring_up(now, pace, allowance, told)
            self._general.tidy()
        self._stats = {**self._general.stats(), **told.stats()}
        self._before = now
        return self._general.ask(now)

    def stats(self) -> dict[str, Any]:
        """Return what the last answer was made of, and what it cost."""
        return self._stats

    def state(self) -> StateData:
        """Return what windows and replicas do not tell: the store is filled again from these."""
        return {
            "general": self._general.state(),
            "before": self._before,
        }

    def restore(self, state: StateData) -> None:
        """Go on from a state; the replicas are restored already."""
        self._general.restore(state["general"])
        self._before = state["before"]

    def _pace(self, now: int) -> _Pace:
        times = [frame for frame in self._frames if isinstance(frame, TimeFrame)]
        step = min((frame.step for frame in times), default=now - (self._before or now))
        return _Pace(max(step, 1), max(map(_lives, self._frames)))


def _lives(frame: TimeFrame | CountFrame) -> int:
    size = frame.range if isinstance(frame, TimeFrame) else frame.size
    return -(-size // frame.step)


@dataclass(frozen=True, slots=True)
class _Pace:
    """The time from one evaluation to the next, and how many hold what has just come."""

    step: int
    lives: int


@dataclass(slots=True)
class _Allowance:
    """What is left of budget and limits for the clauses of one evaluation, in equal shares.

    What a clause does not spend is there for those after it.
    """

    options: ServiceOptions
    clauses: int
    clock: Callable[[], float] = time.monotonic
    spent: int = 0
    requests: int = 0
    start: float = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.clock()

    def share(self) -> tuple[int, Limits]:
        """Return the share of the next clause."""
        limits = self.options.limits
        passed = int((self.clock() - self.start) * 1000)
        budget = self._part(self.options.budget, self.spent)
        requests = self._part(limits.max_requests, self.requests)
        deadline = self._part(limits.deadline_ms, passed)
        self.clauses -= 1
        return budget or 0, Limits(requests, deadline)

    def _part(self, limit: int | None, spent: int) -> int | None:
        return None if limit is None else -(-max(limit - spent, 0) // self.clauses)

    def spend(self, refreshed: RefreshReport) -> None:
        """Take off what a clause has cost."""
        self.spent += refreshed.fetched
        self.requests += refreshed.requests


@dataclass(slots=True)
class _Told:
    """What an answer says of its remote data, over all clauses."""

    spent: int = 0
    unanswered: int = 0
    requests: int = 0
    cold_misses: int = 0
    stale: int = 0
    oldest: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    exact: bool = True

    def stats(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "budget_spent": self.spent,
            "requests": self.requests,
            "cold_misses": self.cold_misses,
            "stale": self.stale,
            "oldest_ms": self.oldest,
            "exact": self.exact,
        }
        return {**told, **failure_stats(self.unanswered, self.faults)}


class _Served:
    """One clause: its replica, and its graph in the store."""

    def __init__(self, clause: ServiceClause, refresh: Refresh, general: SparqlEvaluator) -> None:
        self._refresh = refresh
        self._general = general
        order = general.config.needs_order
        self._graph = ServiceGraph(clause, refresh.plan.pattern, general.store, in_order=order)
        general.hold(self._graph)
        keys = refresh.replica.keys
        self._before: Integers | None = None  # the keys of the last evaluation; none: all there are
        self._keys = None if clause.keys is None else RequiredKeys(clause.keys, keys)

    @property
    def options(self) -> ServiceOptions:
        return self._refresh.plan.options

    def begin(self, now: int) -> None:
        self._refresh.begin(now)

    def bring_up(self, now: int, pace: _Pace, allowance: _Allowance, told: _Told) -> None:
        """Refresh the replica within a share of what is allowed, and the graph from it."""
        self._refresh.pushed(now)
        needed = self._needed(now)
        budget, limits = allowance.share()
        refreshed = self._fetch(needed, now, pace, budget, limits)
        allowance.spend(refreshed)
        replica = self._refresh.replica
        keys = replica.keys.of(needed.numbers)
        self._graph.hold(needed.numbers.tolist(), keys, replica.values(needed.numbers))
        self._tell(needed, refreshed, now, told)
        self._forget(needed.numbers)

    def _forget(self, needed: Integers) -> None:
        """Forget keys that neither this evaluation needs nor the replica holds."""
        before = self._refresh.replica.keys.every() if self._before is None else self._before
        self._refresh.forget(before, lambda keys: np.isin(keys, needed))
        self._before = needed

    def _needed(self, now: int) -> RequiredKeysQuery:
        replica = self._refresh.replica
        if self._keys is None:
            return RequiredKeysQuery(replica.keys.numbers([()]))
        needed = self._keys.at(self._general.store, now)
        if not needed.is_all:
            return needed
        held = replica.keys.in_order(np.union1d(needed.numbers, replica.held()))
        return RequiredKeysQuery(held, is_all=True, unaskable=needed.unaskable)

    def _fetch(
        self, needed: RequiredKeysQuery, now: int, pace: _Pace, budget: int, limits: Limits
    ) -> RefreshReport:
        """Fetch what the policy elects."""
        is_known = self._refresh.replica.is_known(needed.numbers)
        known, cold = needed.numbers[is_known], needed.numbers[~is_known]
        lives = np.full(len(known), pace.lives, dtype=np.int64)
        candidates = Candidates(known, np.zeros(len(known)), lives, 1, pace.step)
        scores = np.zeros(len(cold))
        return self._refresh.fetch(candidates, cold, scores, now, budget=budget, limits=limits)

    def _tell(
        self, needed: RequiredKeysQuery, refreshed: RefreshReport, now: int, told: _Told
    ) -> None:
        refresh, replica = self._refresh, self._refresh.replica
        is_pushed = refresh.plan.is_pushed
        known = needed.numbers[replica.is_known(needed.numbers)]
        entries = replica.entries(known)
        told.spent += refreshed.fetched
        told.unanswered += refreshed.unanswered
        told.requests += refreshed.requests
        told.cold_misses += refreshed.cold_misses + needed.unaskable
        told.faults.update(refreshed.faults)
        is_all_known = len(known) == len(needed.numbers) and not needed.unaskable
        if is_pushed:
            is_exact = (is_all_known or refresh.is_whole) and not refresh.has_missed_a_change
        else:
            told.stale += int(np.count_nonzero(entries.is_stale(now)))
            told.oldest = max(told.oldest, int(np.max(now - entries.last_refresh, initial=0)))
            is_exact = is_all_known and bool((entries.last_refresh == now).all())
        told.exact &= is_exact and (is_pushed or not needed.is_all)


class ServiceGraph:
    """The graph of a clause: a node for each remote solution of the keys that it holds.

    Where an answer depends on the order of triples, they are to be `in_order`: key by key.
    """

    def __init__(
        self,
        clause: ServiceClause,
        pattern: RemotePattern,
        store: ox.Store,
        *,
        in_order: bool = False,
    ) -> None:
        self._name = ox.NamedNode(clause.graph)
        self._store = store
        self._keys = pattern.keys
        self._properties = {
            name: ox.NamedNode(variable_iri(name)) for name in (*pattern.keys, *pattern.variables)
        }
        self._mark = ox.NamedNode(variable_iri("")) if clause.is_marked else None
        self._held: dict[int, tuple[tuple[RemoteSolution, ...], list[ox.Quad]]] = {}
        self._inserted = InsertionOrder() if in_order else None
        self.gone = 0
        store.add_graph(self._name)

    def __len__(self) -> int:
        return sum(len(quads) for _, quads in self._held.values())

    def hold(
        self,
        numbers: Sequence[int],
        keys: Sequence[Key],
        values: Sequence[tuple[RemoteSolution, ...]],
    ) -> None:
        """Hold the solutions of these keys, given in their order, and no others."""
        wanted = set(numbers)
        for number in [number for number in self._held if number not in wanted]:
            self._drop(number)
        for number, key, solutions in zip(numbers, keys, values, strict=True):
            if number in self._held:
                if self._held[number][0] is solutions:
                    continue
                self._drop(number)
            quads = list(self._quads(number, key, solutions))
            self._store.extend(quads)
            self._held[number] = solutions, quads
            if self._inserted is not None:
                self._inserted.add(quads)
        self._held = {number: self._held[number] for number in numbers}

    def _drop(self, number: int) -> None:
        quads = self._held.pop(number)[1]
        self.gone += len(quads)
        for quad in quads:
            self._store.remove(quad)

    def _in_order(self) -> list[ox.Quad]:
        return [quad for _, quads in self._held.values() for quad in quads]

    def is_in_order(self) -> bool:
        """Tell whether the store has the triples in the order that a new one would have."""
        return self._inserted is None or self._inserted.are_in_order(self._in_order())

    def move_to(self, store: ox.Store) -> None:
        """Stand in a new store from now on, in order."""
        self._store, self.gone, quads = store, 0, self._in_order()
        store.add_graph(self._name)
        store.extend(quads)
        if self._inserted is not None:
            self._inserted = InsertionOrder()
            self._inserted.add(quads)

    def _quads(
        self, number: int, key: Key, solutions: tuple[RemoteSolution, ...]
    ) -> Iterator[ox.Quad]:
        for place, solution in enumerate(solutions):
            node = ox.NamedNode(f"{self._name.value}:{number}:{place}")
            if self._mark is not None:
                yield ox.Quad(node, self._mark, _MARK, self._name)
            terms = {**dict(zip(self._keys, key, strict=True)), **solution}
            for name, verb in self._properties.items():
                if (term := terms.get(name)) is not None:
                    yield ox.Quad(node, verb, self._own(term), self._name)

    def _own(self, term: Term) -> Term:
        """Keep blank nodes apart from those of other clauses."""
        if isinstance(term, ox.BlankNode):
            return ox.BlankNode(f"{term.value}c{self._name.value.rpartition(':')[2]}")
        return term
