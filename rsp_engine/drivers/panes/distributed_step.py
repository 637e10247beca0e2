"""A step whose windows can be evaluated in any process, from the contents of their panes.

A window that is due is only noted. It is evaluated with the others of its micro-batch, by executors
or here, and its answer then leaves by R2S as that of any other step. What the step saves is what
it holds of open panes, and the manifests of what is in files: no state of the evaluation, which
begins anew with the panes of a window.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.drivers.panes.due_window import DueWindow, PaneParts
from rsp_engine.drivers.panes.pane_table import content_rows
from rsp_engine.drivers.panes.stored_pane import StoredPane
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.pairs.config import Skybands
from rsp_engine.evaluators.protocol import EvaluatorContext
from rsp_engine.evaluators.step import Step
from rsp_engine.evaluators.window_run import WholeAnswer, WindowRun, can_share_windows
from rsp_engine.io.blank_nodes import numbered
from rsp_engine.model.answers import Answer
from rsp_engine.model.windows import Pane, TimeFrame
from rsp_engine.operators.sparql.pane_matcher import Matcher, PaneSolutions
from rsp_engine.operators.windows.time_windows import TimedScan, TimeScan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rsp_engine.drivers.panes.pane_file import PaneReader, PaneWriter
    from rsp_engine.evaluators.group_topk import GroupTopkEvaluator
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.service.shared_services import SharedServices
    from rsp_engine.evaluators.step import PutContent
    from rsp_engine.model.state import StateData

__all__ = ["BucketStep", "DistributedStep", "distributed_step", "steps_of"]


def steps_of(
    plans: Sequence[PhysicalPlan],
    skybands: Skybands,
    services: SharedServices,
    can_send: Callable[[PhysicalPlan], bool],
) -> list[Step]:
    """Return a step for each plan, distributed if it can be, and other processes can have the plan.

    None is if a query reads the answers of another: these are needed one after the other.
    """
    read = {scan.stream for plan in plans for scan in plan.scans}
    is_chained = any(plan.feeds in read for plan in plans)
    return [
        distributed_step(plan)
        if can_share_windows(plan) and not is_chained and can_send(plan)
        else Step(plan, skybands, services)
        for plan in plans
    ]


def distributed_step(plan: PhysicalPlan) -> DistributedStep:
    """Return a step of a plan whose windows can be evaluated in any process."""
    match plan.operator:
        case GroupTopkConfig() as config:
            return BucketStep(plan, config)
        case _:
            return DistributedStep(plan)


class DistributedStep(Step):
    """A step that leaves the evaluation of its windows to others, or to a run of windows here."""

    def __init__(self, plan: PhysicalPlan) -> None:
        super().__init__(plan)
        # Every scan: `can_share_windows` says no to others.
        self._time_scans = [scan for scan in self._scans if isinstance(scan, TimeScan)]
        self._panes: list[dict[Pane, PaneParts]] = [{} for _ in plan.scans]
        self._run: WindowRun | None = None
        self._may_give_blank_nodes = False

    @property
    def bucket_key(self) -> tuple[int, ...] | None:
        """The places of the key of a group in a solution; None if windows have no buckets."""
        return None

    @property
    def panes_per_window(self) -> int:
        """About how many panes a window has."""
        frames = [scan.frame for scan in self.plan.scans if isinstance(scan.frame, TimeFrame)]
        return max(-(-frame.range // frame.step) for frame in frames)

    def put_stored(self, scan: int, pane: Pane, stored: StoredPane) -> None:
        """Put the manifest of content in a file into a pane, all of whose windows are open."""
        self._time_scans[scan].fill(pane)
        self._panes[scan].setdefault(pane, PaneParts()).stored.append(stored)

    def evaluate(self, instant: int) -> DueWindow:
        """Note a window that is due."""
        panes = []
        for number, scan in enumerate(self._time_scans):
            held, parts = dict(self._held(scan, instant)), self._panes[number]
            for pane in [pane for pane in parts if pane.last < scan.closed]:
                del parts[pane]
            for pane, contents in held.items():
                parts.setdefault(pane, PaneParts()).held = contents
            within = [pane for pane in parts if pane.first <= scan.closed]
            panes.append({pane: parts[pane] for pane in sorted(within)})
        closed = tuple(scan.closed for scan in self._time_scans)
        return DueWindow(self, instant, self._interval(instant), closed, tuple(panes))

    def _held(self, scan: TimeScan, now: int) -> Iterator[tuple[Pane, list[PutContent]]]:
        """Yield the panes of the last closed window, each with what this process holds of it."""
        for pane, triples in scan.content():
            if isinstance(scan, TimedScan) and triples:
                rows: list[Any] = [(t.subject, t.predicate, t.object) for t in triples]
                yield pane, [PaneSolutions(rows, scan.times(pane), np.ones(len(rows)))]
            else:
                yield pane, [triples] if content_rows(triples) else []

    @property
    def is_loaded(self) -> bool:
        """Whether the last window was evaluated in this process, which has its content."""
        return self._run is not None

    def answer_here(self, window: DueWindow, reader: PaneReader) -> WholeAnswer:
        """Evaluate a window in this process: after the one before it, if that was too."""
        if self._run is None:
            self._run = WindowRun(self.plan, self._evaluator)

        def load(scan: int, pane: Pane) -> Iterator[PutContent]:
            parts = window.panes[scan][pane]
            yield from parts.held
            for stored in parts.stored:
                for table in stored.tables:
                    yield from reader.read(stored.file, table)

        self._run.move(window.closed, window.panes, load)
        return self._run.answer(window.instant)

    def leave_here(self, number: int, windows: Sequence[DueWindow], writer: PaneWriter) -> None:
        """Let others evaluate windows: what this process holds of them is stored."""
        if self._run is not None:
            self._run = None
            self._evaluator = WindowRun(self.plan).evaluator
        for window in windows:
            for scan, panes in enumerate(window.panes):
                for pane, parts in panes.items():
                    parts.stored += [writer.store(number, each) for each in parts.held]
                    parts.held = []
                    self._time_scans[scan].release(pane)

    def emit(self, window: DueWindow, whole: WholeAnswer, seconds: float) -> Answer:
        """Return the answer that leaves the engine; call this in the order of the windows."""
        self._may_give_blank_nodes |= whole.may_give_blank_nodes
        content = self._output(whole.content)
        if self._may_give_blank_nodes:
            content = numbered(content)
        answer = Answer(self.plan.name, window.interval, content, whole.stats)
        self._report_to_watch(answer, seconds)
        return answer

    def stored(self) -> Iterator[StoredPane]:
        """Yield the manifests in use."""
        for panes in self._panes:
            for parts in panes.values():
                yield from parts.stored

    def _evaluation_state(self) -> StateData:
        panes = {
            str(number): {
                pane.name: [stored.state() for stored in parts.stored]
                for pane, parts in panes.items()
                if parts.stored and pane.last >= self._scans[number].closed
            }
            for number, panes in enumerate(self._panes)
        }
        return {"panes": panes, "may_give_blank_nodes": self._may_give_blank_nodes}

    def _restore_evaluation(self, state: StateData) -> None:
        self._may_give_blank_nodes = state["may_give_blank_nodes"]
        self._panes = [
            {
                Pane.named(name): PaneParts(stored=[*map(StoredPane.read, stored)])
                for name, stored in state["panes"][str(number)].items()
            }
            for number in range(len(self._scans))
        ]


class BucketStep(DistributedStep):
    """A step of ranked groups: a window has a part for each bucket of their keys."""

    def __init__(self, plan: PhysicalPlan, config: GroupTopkConfig) -> None:
        super().__init__(plan)
        self._config = config

    @property
    def bucket_key(self) -> tuple[int, ...]:
        """The places of the key of a group in a solution."""
        return self._config.grouping.keys

    def _held(self, scan: TimeScan, now: int) -> Iterator[tuple[Pane, list[PutContent]]]:
        if not isinstance(scan, TimedScan):
            yield from super()._held(scan, now)
            return
        # Elements that arrive late or are read here are not matched yet.
        for pane, matched in list(scan.fresh(self._matcher, now)):
            scan.put_matched(pane, matched)
            yield pane, [matched]

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self._config.matching, self._context.store())

    @cached_property
    def _combiner(self) -> GroupTopkEvaluator:
        """An evaluator that has seen no window."""
        return self._config.evaluator(self._context)

    @property
    def _context(self) -> EvaluatorContext:
        return EvaluatorContext(self.plan.scans, self.plan.graphs, (), Skybands())

    def combine(self, window: DueWindow, parts: Sequence[StateData]) -> WholeAnswer:
        """Return the answer over a window from the parts of all buckets."""
        combiner = self._combiner
        content = combiner.combine(parts, window.instant)
        return WholeAnswer(content, combiner.stats(), combiner.may_give_blank_nodes)
