"""The SERVICE evaluator: general queries with SERVICE clauses over replicas (WSJ in ACQUA).

    move windows -> query required keys -> refresh replica -> update graphs -> evaluate query

Each clause has a graph in the store with the remote solutions of its required keys. It is updated
incrementally: only keys that are added, removed or changed are touched.

A general query has no scores, so all candidates tie, and the key breaks the tie. The remaining life
of a key in the window is not computed: all count as if they had arrived with the last pane.
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

    from rsp_engine.evaluators.physical_plan import ServicePlan, WindowScan
    from rsp_engine.evaluators.service.config import ServiceClause, ServiceConfig
    from rsp_engine.evaluators.service.refresh import Refresh, RefreshReport
    from rsp_engine.model.answers import Boolean, Graph, Solutions
    from rsp_engine.model.arrays import Booleans, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.model.windows import CountFrame
    from rsp_engine.operators.windows.scan import Scan
    from rsp_engine.replica.pattern import Key, RemotePattern, RemoteSolution

__all__ = ["ServiceEvaluator", "ServiceGraph"]

_MARK = ox.Literal("true", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#boolean"))


class ServiceEvaluator:
    """Evaluates a general query whose SERVICE clauses read replicas."""

    def __init__(
        self,
        config: ServiceConfig,
        store: ox.Store,
        scans: Sequence[WindowScan],
        refreshes: Sequence[Refresh],
    ) -> None:
        self._general = SparqlEvaluator(config.query, store, [scan.window for scan in scans])
        self._frames = [scan.frame for scan in scans]
        served = zip(config.clauses, refreshes, strict=True)
        self._clauses = [_Clause(clause, refresh, self._general) for clause, refresh in served]
        self._before: int | None = None
        self._stats: dict[str, Any] = {}

    @property
    def may_give_blank_nodes(self) -> bool:
        return self._general.may_give_blank_nodes

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph | Boolean:
        """Return the answer over the content of the scans and the replicas, at an instant."""
        self._general.move(scans)
        pace = self._pace(now)
        allowance = _Allowance(self._clauses[0].plan, len(self._clauses))
        stats = _RemoteStats()
        for clause in self._clauses:
            clause.begin(min(scan.interval().open for scan in scans))
            clause.bring_up(now, pace, allowance, stats)
            self._general.tidy()
        self._stats = {**self._general.stats(), **stats.plain()}
        self._before = now
        return self._general.ask(now)

    def stats(self) -> dict[str, Any]:
        """Return the cost and the quality of the last answer."""
        return self._stats

    def state(self) -> StateData:
        """Return the state as plain data; the store is rebuilt from windows and replicas."""
        return {
            "general": self._general.state(),
            "before": self._before,
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state. The replicas must be restored before."""
        self._general.restore(state["general"])
        self._before = state["before"]
        for clause in self._clauses:
            clause.is_resumed = True

    def _pace(self, now: int) -> _Pace:
        times = [frame for frame in self._frames if isinstance(frame, TimeFrame)]
        step = min((frame.step for frame in times), default=now - (self._before or now))
        return _Pace(max(step, 1), max(map(_lives, self._frames)))


def _lives(frame: TimeFrame | CountFrame) -> int:
    size = frame.range if isinstance(frame, TimeFrame) else frame.size
    return -(-size // frame.step)


@dataclass(frozen=True, slots=True)
class _Pace:
    """The time between evaluations, in ms, and how many of them see a new arrival."""

    step: int
    lives: int


@dataclass(slots=True)
class _Allowance:
    """The budget and limits of one evaluation, shared equally by its clauses.

    What a clause does not use is shared by the clauses after it.
    """

    plan: ServicePlan
    clauses: int
    clock: Callable[[], float] = time.monotonic
    spent: int = 0
    requests: int = 0
    start: float = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.clock()

    def share(self) -> tuple[int | None, Limits]:
        """Return the share of the next clause."""
        limits = self.plan.limits
        passed = int((self.clock() - self.start) * 1000)
        budget = self._part(self.plan.options.most_keys, self.spent)
        requests = self._part(limits.max_requests, self.requests)
        deadline = self._part(limits.deadline_ms, passed)
        self.clauses -= 1
        return budget, Limits(requests, deadline)

    def _part(self, limit: int | None, spent: int) -> int | None:
        return None if limit is None else -(-max(limit - spent, 0) // self.clauses)

    def spend(self, refreshed: RefreshReport) -> None:
        """Subtract the cost of a clause."""
        self.spent += refreshed.fetched
        self.requests += refreshed.requests


@dataclass(slots=True)
class _RemoteStats:
    """The statistics of an answer about its remote data, over all clauses."""

    spent: int = 0
    unanswered: int = 0
    requests: int = 0
    cold_misses: int = 0
    stale: int = 0
    oldest: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    elected: list[Any] | None = None
    exact: bool = True

    def plain(self) -> dict[str, Any]:
        stats: dict[str, Any] = {
            "budget_spent": self.spent,
            "requests": self.requests,
            "cold_misses": self.cold_misses,
            "stale": self.stale,
            "oldest_ms": self.oldest,
            "exact": self.exact,
            **({} if self.elected is None else {"elected": self.elected}),
        }
        return {**stats, **failure_stats(self.unanswered, self.faults)}


class _Clause:
    """One clause: its replica, and its graph in the store."""

    def __init__(self, clause: ServiceClause, refresh: Refresh, general: SparqlEvaluator) -> None:
        self._refresh = refresh
        self._general = general
        order = general.config.needs_order
        self._graph = ServiceGraph(clause, refresh.plan.pattern, general.store, in_order=order)
        general.hold(self._graph)
        keys = refresh.replica.keys
        self._before: Integers | None = None  # the keys of the last evaluation; None: unknown
        self.is_resumed = False
        """Whether the clause has had keys before that are not known."""
        refresh.serve(self._uses)
        self._keys = None if clause.keys is None else RequiredKeysQuery(clause.keys, keys)

    @property
    def plan(self) -> ServicePlan:
        return self._refresh.plan

    def begin(self, now: int) -> None:
        self._refresh.begin(now)

    def bring_up(self, now: int, pace: _Pace, allowance: _Allowance, stats: _RemoteStats) -> None:
        """Refresh the replica within a share of the allowance, and update the graph."""
        self._refresh.pushed(now)
        required = self._required(now)
        budget, limits = allowance.share()
        refreshed = self._fetch(required, now, pace, budget, limits)
        allowance.spend(refreshed)
        replica = self._refresh.replica
        keys = replica.keys.of(required.numbers)
        self._graph.hold(required.numbers.tolist(), keys, replica.values(required.numbers))
        self._count(required, refreshed, now, stats)
        self._forget(required.numbers)

    def _forget(self, required: Integers) -> None:
        """Forget keys that are neither required nor in the replica."""
        before = self._refresh.replica.keys.every() if self._before is None else self._before
        self._before = required
        self._refresh.freed()  # nothing is stored by number but what is used
        self._refresh.forget(before)

    def _uses(self, keys: Integers) -> Booleans:
        """Return which keys the last evaluation has required."""
        if self._before is None:
            return np.full(len(keys), self.is_resumed)
        return np.isin(keys, self._before)

    def _required(self, now: int) -> RequiredKeys:
        replica = self._refresh.replica
        if self._keys is None:
            return RequiredKeys(replica.keys.numbers([()]))
        required = self._keys.at(self._general.store, now)
        if not required.is_all:
            return required
        numbers = replica.keys.in_order(np.union1d(required.numbers, replica.known_keys()))
        return RequiredKeys(numbers, is_all=True, unaskable=required.unaskable)

    def _fetch(
        self, required: RequiredKeys, now: int, pace: _Pace, budget: int | None, limits: Limits
    ) -> RefreshReport:
        """Let the policy elect keys, and fetch them."""
        is_known = self._refresh.replica.is_known(required.numbers)
        known, cold = required.numbers[is_known], required.numbers[~is_known]
        lives = np.full(len(known), pace.lives, dtype=np.int64)
        candidates = Candidates(known, np.zeros(len(known)), lives, 1, pace.step)
        scores = np.zeros(len(cold))
        return self._refresh.fetch(candidates, cold, scores, now, budget=budget, limits=limits)

    def _count(
        self, required: RequiredKeys, refreshed: RefreshReport, now: int, stats: _RemoteStats
    ) -> None:
        """Add the statistics of a refresh to those of the evaluation."""
        refresh, replica = self._refresh, self._refresh.replica
        is_pushed = refresh.plan.is_pushed
        known = required.numbers[replica.is_known(required.numbers)]
        entries = replica.entries(known)
        stats.spent += refreshed.fetched
        stats.unanswered += refreshed.unanswered
        stats.requests += refreshed.requests
        stats.cold_misses += refreshed.cold_misses + required.unaskable
        stats.faults.update(refreshed.faults)
        if refreshed.elected is not None:
            stats.elected = [*(stats.elected or ()), *refreshed.elected]
        is_all_known = len(known) == len(required.numbers) and not required.unaskable
        if is_pushed:
            is_exact = (is_all_known or refresh.is_whole) and not refresh.has_missed_a_change
        else:
            stats.stale += int(np.count_nonzero(entries.is_stale(now)))
            stats.oldest = max(stats.oldest, int(np.max(now - entries.last_refresh, initial=0)))
            is_exact = is_all_known and bool((entries.last_refresh == now).all())
        stats.exact &= is_exact and (is_pushed or not required.is_all)


class ServiceGraph:
    """The graph of a clause in the store: a node for each remote solution of its keys.

    If an answer depends on the insertion order of triples, they are kept `in_order`, key by key.
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
        self._solutions: dict[int, tuple[tuple[RemoteSolution, ...], list[ox.Quad]]] = {}
        self._inserted = InsertionOrder() if in_order else None
        self.gone = 0
        store.add_graph(self._name)

    def __len__(self) -> int:
        return sum(len(quads) for _, quads in self._solutions.values())

    def hold(
        self,
        numbers: Sequence[int],
        keys: Sequence[Key],
        values: Sequence[tuple[RemoteSolution, ...]],
    ) -> None:
        """Hold the solutions of these keys, in this order, and no others."""
        wanted = set(numbers)
        for number in [number for number in self._solutions if number not in wanted]:
            self._drop(number)
        for number, key, solutions in zip(numbers, keys, values, strict=True):
            if number in self._solutions:
                if self._solutions[number][0] is solutions:
                    continue
                self._drop(number)
            quads = list(self._quads(number, key, solutions))
            self._store.extend(quads)
            self._solutions[number] = solutions, quads
            if self._inserted is not None:
                self._inserted.add(quads)
        self._solutions = {number: self._solutions[number] for number in numbers}

    def _drop(self, number: int) -> None:
        quads = self._solutions.pop(number)[1]
        self.gone += len(quads)
        for quad in quads:
            self._store.remove(quad)

    def _in_order(self) -> list[ox.Quad]:
        return [quad for _, quads in self._solutions.values() for quad in quads]

    def is_in_order(self) -> bool:
        """Return whether the triples have the insertion order that a new store would have."""
        return self._inserted is None or self._inserted.are_in_order(self._in_order())

    def move_to(self, store: ox.Store) -> None:
        """Move the graph to a new store, in order."""
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
                    yield ox.Quad(node, verb, self._relabel(term), self._name)

    def _relabel(self, term: Term) -> Term:
        """Relabel blank nodes, so that they differ from those of other clauses."""
        if isinstance(term, ox.BlankNode):
            return ox.BlankNode(f"{term.value}c{self._name.value.rpartition(':')[2]}")
        return term
