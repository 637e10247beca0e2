"""A step: one running query, which takes elements and watermarks and yields answers.

It is the same under every driver.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, assert_never

import pyoxigraph as ox

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.answer_state import read_answer, write_answer
from rsp_engine.evaluators.pairs.config import Skybands
from rsp_engine.evaluators.physical_plan import block_graphs, changes_stream, plan_identity
from rsp_engine.evaluators.protocol import Bidding, EvaluatorContext, Snapshots
from rsp_engine.evaluators.shared_panes import SharedPanes
from rsp_engine.io.blank_nodes import numbered
from rsp_engine.model.answers import Answer, Boolean, Graph, Interval, Solutions
from rsp_engine.model.state import check_header, damage_guard, with_header
from rsp_engine.model.windows import CountFrame, TimeFrame
from rsp_engine.operators.sparql.pane_matcher import PaneSolutions
from rsp_engine.operators.windows.count_windows import CountedScan, CountScan, DescribedCountScan
from rsp_engine.operators.windows.element_solutions import SolutionDescriber
from rsp_engine.operators.windows.r2s import StreamOperator
from rsp_engine.operators.windows.report import Report
from rsp_engine.operators.windows.time_windows import (
    DescribedScan,
    MatchedScan,
    TimedScan,
    TimeScan,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan, ServicePlan, WindowScan
    from rsp_engine.evaluators.protocol import ScanKind
    from rsp_engine.evaluators.service.refresh import Refresh
    from rsp_engine.evaluators.service.service_budget import ServiceBudget
    from rsp_engine.evaluators.service.shared_services import SharedServices
    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import Pane
    from rsp_engine.monitor.run_monitor import RunMonitor
    from rsp_engine.operators.pairs.shared_skyband import SharedSkyband
    from rsp_engine.operators.windows.scan import Refusal, Scan

    PutContent = Sequence[ox.Triple] | PaneSolutions
    """What a driver puts into a pane: triples, or solutions."""

__all__ = ["PendingAnswer", "Step", "due_at_instants", "due_together", "make_scan", "put_content"]


class PendingAnswer:
    """The place of an answer, in the order of answers, of a window that is evaluated later."""


class Step:
    """A query with its state: the content of its open windows, its replicas and its last answer.

    Queries that are evaluated pane by pane share `panes`, queries of pairs `skybands`, and those of
    a service with a budget `services`; steps of the latter two must be evaluated in the order of
    `due_together` or of `due_at_instants`.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        skybands: Skybands | None = None,
        services: SharedServices | None = None,
        panes: SharedPanes | None = None,
    ) -> None:
        self.plan = plan
        self.watch: RunMonitor | None = None
        """The monitor that receives each answer with its latency."""
        self._scans = [make_scan(plan, scan) for scan in plan.scans]
        self._refreshes = _refreshes(plan, services)
        self._feeds: dict[str, list[Refresh]] = {}
        for refresh in self._refreshes:
            if refresh.plan.is_pushed:
                stream = changes_stream(refresh.plan.pattern.service)
                self._feeds.setdefault(stream, []).append(refresh)
        windowed = dict.fromkeys(scan.stream for scan in plan.scans)
        self.streams = (*windowed, *self._feeds)
        self._by_stream: dict[str, list[Scan]] = {}
        for scan, window in zip(self._scans, plan.scans, strict=True):
            self._by_stream.setdefault(window.stream, []).append(scan)
        counts = any(isinstance(scan, CountScan) for scan in self._scans)
        self._report = Report(self._scans, plan.report, plan.r2s, plan.bounds, counts=counts)
        context = EvaluatorContext(
            plan.scans,
            plan.graphs,
            self._refreshes,
            skybands or Skybands(),
            panes or SharedPanes(),
        )
        self._evaluator = plan.operator.evaluator(context)
        self._r2s = StreamOperator(plan.r2s)

    def take(
        self,
        stream: str,
        timestamp: int,
        triples: Sequence[ox.Triple],
        watermark: float,
    ) -> Refusal | None:
        """Add an element to the windows over its stream; return the reason if all refuse it.

        An element of a change feed goes to the replicas of its service.
        """
        if stream in self._feeds:
            for refresh in self._feeds[stream]:
                refresh.push(timestamp, triples)
            return None
        scans = self._by_stream[stream]
        if len(scans) == 1:
            return scans[0].take(timestamp, triples, watermark)
        refusals = [scan.take(timestamp, triples, watermark) for scan in scans]
        if None in refusals:
            return None
        return next((r for r in refusals if r is not None and r.is_fault), refusals[0])

    def put(self, scan: int, pane: Pane, content: PutContent) -> None:
        """Put content that a driver has read into a pane, all of whose windows are open."""
        put_content(self._scans[scan], self.plan.operator.scan_kind, pane, content)

    def may_be_due(self, watermark: float) -> bool:
        """Return whether an evaluation may be due, by a cheap check."""
        return self._report.may_be_due(watermark)

    def waits_for(self, watermark: float) -> float:
        """Return the watermark of the stream of answers: no earlier answer will follow."""
        return self._report.waits_for(watermark)

    def due(self, watermark: float) -> Iterator[Answer]:
        """Yield the answer of each evaluation that is due at the watermark."""
        for answer in self.due_or_pending(watermark):
            assert isinstance(answer, Answer), "a driver waits for others"  # noqa: S101
            yield answer

    def due_or_pending(self, watermark: float) -> Iterator[Answer | PendingAnswer]:
        """Yield the answer of each evaluation that is due, or the place of it."""
        for instant in self._report.due(watermark):
            yield self.evaluate(instant)

    @property
    def shares(self) -> SharedSkyband | None:
        """The skyband that this query may share with others; None unless it ranks pairs."""
        return self._evaluator.skyband if isinstance(self._evaluator, Snapshots) else None

    @property
    def budgets(self) -> list[ServiceBudget]:
        """The budgets of services that this query shares with others, if they have any."""
        return [each.budget for each in self._refreshes if each.budget is not None]

    def clauses_of(self, budget: ServiceBudget) -> list[ServicePlan]:
        """Return the clauses that fetch from the budget of a service."""
        return [each.plan for each in self._refreshes if each.budget is budget]

    def turn(self, watermark: float) -> tuple[int, bool] | None:
        """Move to the next due instant, after `begin`; return it, and whether it is reported."""
        return self._report.advance(watermark)

    def prepare(self, instant: int) -> None:
        """Let the query bid for shared budgets, before any query that shares them is evaluated."""
        if isinstance(self._evaluator, Bidding):
            self._evaluator.prepare(self._scans, instant)

    def now(self, k: int | None = None, size: int | None = None) -> Solutions | Graph:
        """Return a snapshot of the top k pairs of the last `size` milliseconds, or elements."""
        if not isinstance(self._evaluator, Snapshots):
            raise BindingError(
                f"{self.plan.name} has no snapshots: its answers are not those of a skyband",
                "only ranked queries of pairs have snapshots; `explain` shows the operator",
            )
        return self._evaluator.now(k, size)

    def begin(self, watermark: float) -> None:
        """Set the watermark, before `peek` and `advance`."""
        self._report.begin(watermark)

    def peek(self, watermark: float) -> tuple[int, int] | None:
        """Return the next instant that may be due, and the last element of its count window."""
        upcoming = self._report.peek(watermark)
        if upcoming is None:
            return None
        instant, index = upcoming
        frame = self.plan.scans[0].frame
        if isinstance(frame, CountFrame):
            return instant, index * frame.step + frame.size
        return instant, 0

    def advance(self, watermark: float) -> tuple[Answer | PendingAnswer | None] | None:
        """Advance to the next instant; return its answer, or None if it is not reported.

        The answer is wrapped in a tuple. Return plain None if no instant is due.
        """
        upcoming = self._report.advance(watermark)
        if upcoming is None:
            return None
        instant, is_reported = upcoming
        return (self.evaluate(instant) if is_reported else None,)

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.plan.name

    def state(self) -> StateData:
        """Return the state as plain data. Call it between elements and between evaluations.

        Whatever can be derived is left out, so the first evaluations of a restored step are slower.
        """
        query = self.plan.operator.query
        content = {
            "scans": {str(number): scan.state() for number, scan in enumerate(self._scans)},
            "report": self._report.state(),
            "services": {str(n): refresh.state() for n, refresh in enumerate(self._refreshes)},
            "evaluation": self._evaluation_state(),
            "before": self._r2s.state(partial(write_answer, query)),
        }
        return with_header("Step", plan_identity(self.plan), content)

    def restore(self, state: StateData) -> None:
        """Restore a saved state of an equal plan, before the first element.

        Raise `StateError` if the state is of another plan, or damaged; discard the step then.
        """
        check_header(state, "Step", plan_identity(self.plan))
        with damage_guard(self.plan.name):
            scans, services = state["scans"], state["services"]
            for number, scan in enumerate(self._scans):
                scan.restore(scans[str(number)])
            for number, refresh in enumerate(self._refreshes):
                refresh.restore(services[str(number)])
            self._report.restore(state["report"])
            self._restore_evaluation(state["evaluation"])
            self._r2s.restore(state["before"], partial(read_answer, self.plan.operator.query))

    def _evaluation_state(self) -> StateData:
        return self._evaluator.state()

    def _restore_evaluation(self, state: StateData) -> None:
        self._evaluator.restore(state)

    def close(self) -> None:
        """Close the endpoints of services."""
        for refresh in self._refreshes:
            refresh.close()

    def outcomes(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield each service with how many fetched keys were changed, unchanged or failed."""
        for refresh in self._refreshes:
            yield refresh.plan.pattern.service, refresh.outcomes.copy()

    def evaluate(self, instant: int) -> Answer | PendingAnswer:
        """Return the answer of an instant that is due, or the place of it."""
        start = perf_counter()
        content = self._output(self._evaluator.answer(self._scans, instant))
        if self._evaluator.may_give_blank_nodes:
            content = numbered(content)
        stats = {**self._evaluator.stats(), **self._budget_stats()}
        answer = Answer(self.plan.name, self._interval(instant), content, stats)
        self._report_to_watch(answer, perf_counter() - start)
        return answer

    def _budget_stats(self) -> dict[str, Any]:
        """Return what budgets of services gave to the last evaluation, if there are any."""
        shared = {budget.service: budget.stats(self.name) for budget in self.budgets}
        return {"service_budgets": shared} if shared else {}

    def _report_to_watch(self, answer: Answer, seconds: float) -> None:
        if self.watch is not None:
            self.watch.evaluated(answer, seconds)

    def _output(self, content: Solutions | Graph | Boolean) -> Solutions | Graph | Boolean:
        """Apply R2S: return the part of an answer that is output."""
        match content:
            case Solutions(variables, rows, ranked):
                output = self._r2s.apply(rows, lambda row: frozenset(row.bindings.items()))
                return Solutions(variables, tuple(output), ranked)
            case Graph(triples):
                return Graph(tuple(self._r2s.apply(triples, lambda triple: triple)))
            case Boolean(value):
                values = self._r2s.apply((value,), lambda value: value)
                return Boolean(values[0] if values else None)
            case _ as unreachable:
                assert_never(unreachable)

    def _interval(self, instant: int) -> Interval:
        """Return the interval of the first declared window that closes at an instant."""
        intervals = [scan.interval() for scan in self._scans]
        return next((i for i in intervals if i.close == instant), intervals[0])


def due_together(
    steps: Sequence[Step], watermarks: Sequence[float]
) -> Iterator[tuple[Step, Answer | PendingAnswer]]:
    """Yield the answers of queries that share a skyband, in the order of their instants.

    A skyband cannot go back: it forgets the objects of earlier windows.
    """
    if len(steps) == 1:
        yield from ((steps[0], answer) for answer in steps[0].due_or_pending(watermarks[0]))
        return
    active = list(zip(steps, watermarks, strict=True))
    for step, watermark in active:
        step.begin(watermark)
    while True:
        upcoming = [(at, n) for n, each in enumerate(active) if (at := each[0].peek(each[1]))]
        if not upcoming:
            return
        _, number = min(upcoming)
        step, watermark = active[number]
        match step.advance(watermark):
            case None:
                del active[number]
            case (Answer() | PendingAnswer() as answer,):
                yield step, answer
            case _:
                continue


def due_at_instants(
    steps: Sequence[Step], watermark: float
) -> Iterator[tuple[Step, Answer | PendingAnswer]]:
    """Yield the answers of queries that share budgets, instant by instant.

    All that are due at an instant divide the budgets, before the first of them fetches.
    """
    active = list(steps)
    for step in active:
        step.begin(watermark)
    while True:
        upcoming = {id(step): at[0] for step in active if (at := step.peek(watermark)) is not None}
        now = min(upcoming.values(), default=None)
        turns = [(step, step.turn(watermark)) for step in active if upcoming.get(id(step)) == now]
        if now is None:
            return
        waiting = [step for step, turn in turns if turn is None]
        active = [step for step in active if step not in waiting]
        due = [step for step, turn in turns if turn is not None and turn[1]]
        budgets = {id(budget): budget for step in due for budget in step.budgets}
        for budget in budgets.values():
            clauses = {step.name: step.clauses_of(budget) for step in due}
            budget.begin(now, {name: plans for name, plans in clauses.items() if plans})
        for step in due:
            step.prepare(now)
        for step in due:
            yield step, step.evaluate(now)


def _refreshes(plan: PhysicalPlan, services: SharedServices | None) -> list[Refresh]:
    """Return the refresh of each SERVICE clause."""
    if not plan.services:
        return []
    # Queries without SERVICE need neither replicas nor policies.
    from rsp_engine.evaluators.service.shared_services import SharedServices

    shared = services or SharedServices()
    return [shared.refresh(service, plan.name) for service in plan.services]


def put_content(scan: Scan, kind: ScanKind, pane: Pane, content: PutContent) -> None:
    """Put content into a pane of a scan of a kind, all of whose windows are open."""
    if isinstance(content, PaneSolutions):
        assert isinstance(scan, TimedScan), "only time windows take solutions"  # noqa: S101
        if kind == "solutions":
            scan.put_matched(pane, content)
        else:
            rows: Sequence[Any] = content.solutions
            scan.put_timed(pane, [ox.Triple(*row) for row in rows], content.times)
    else:
        assert isinstance(scan, TimeScan), "count windows take elements only"  # noqa: S101
        scan.put(pane, content)


def make_scan(plan: PhysicalPlan, scan: WindowScan) -> Scan:
    """Return the kind of scan that the operator of a plan needs."""
    frame, kind, is_alone = scan.frame, plan.operator.scan_kind, len(plan.scans) == 1
    if scan.blocks:
        describing = SolutionDescriber(scan.blocks, block_graphs(scan.blocks, plan.graphs))
        match frame:
            case TimeFrame():
                return DescribedScan(frame, describing)
            case CountFrame():
                return DescribedCountScan(frame, describing, closes_partial=is_alone)
    match frame:
        case TimeFrame() if scan.selection is not None:
            return MatchedScan(frame, scan.selection)
        case TimeFrame():
            return (TimeScan if kind == "triples" else TimedScan)(frame)
        case CountFrame():
            counted = CountedScan if kind == "solutions" else CountScan
            return counted(frame, closes_partial=is_alone)
        case _ as unreachable:
            assert_never(unreachable)
