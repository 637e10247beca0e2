"""A run of consecutive windows, evaluated from the contents of their panes, in any process.

The first window is loaded whole, and each later one is moved from the one before: only panes that
are new are put. The scans and the evaluator are those of a step, so the answers are too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rsp_engine.evaluators.answer_state import read_answer, write_answer
from rsp_engine.evaluators.column_join import ColumnJoinConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.pairs.config import Skybands
from rsp_engine.evaluators.per_pane import PerPaneConfig
from rsp_engine.evaluators.protocol import EvaluatorContext, Parted
from rsp_engine.evaluators.sparql import GeneralConfig
from rsp_engine.evaluators.step import make_scan, put_content
from rsp_engine.model.answers import Boolean, Graph, Solutions
from rsp_engine.model.windows import TimeFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.protocol import Evaluator
    from rsp_engine.evaluators.step import PutContent
    from rsp_engine.model.state import StateData
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

    Load = Callable[[int, Pane], Iterable[PutContent]]
    """Returns the content of a pane of a scan, which is given by its number."""

__all__ = ["WholeAnswer", "WindowRun", "can_share_windows", "read_whole", "write_whole"]


_OPERATORS = (GroupTopkConfig, GeneralConfig, ColumnJoinConfig, PerPaneConfig)


def can_share_windows(plan: PhysicalPlan) -> bool:
    """Return whether the windows of a query can be evaluated in any process.

    Count windows need every element in order, and a budget is a decision of one process.
    """
    are_timed = all(isinstance(scan.frame, TimeFrame) for scan in plan.scans)
    return are_timed and not plan.services and isinstance(plan.operator, _OPERATORS)


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """The answer over one window, before R2S."""

    content: Solutions | Graph | Boolean
    stats: Mapping[str, Any]
    may_give_blank_nodes: bool


class WindowRun:
    """Evaluates windows of one query, in order. Memory: the content of one window."""

    def __init__(self, plan: PhysicalPlan, evaluator: Evaluator | None = None) -> None:
        """Set up a run with an evaluator that has seen no window, or a new one."""
        if evaluator is None:
            context = EvaluatorContext(plan.scans, plan.graphs, (), Skybands())
            evaluator = plan.operator.evaluator(context)
        self.evaluator = evaluator
        self._kind = plan.operator.scan_kind
        self._scans = [make_scan(plan, scan) for scan in plan.scans]
        self._known: list[set[Pane]] = [set() for _ in self._scans]

    def move(self, closed: Sequence[int], panes: Sequence[Iterable[Pane]], load: Load) -> None:
        """Move to the window that each scan has closed; load those panes of it that are new."""
        for number, (scan, index) in enumerate(zip(self._scans, closed, strict=True)):
            known = {pane for pane in self._known[number] if pane.last >= index}
            for pane in panes[number]:
                if pane not in known:
                    for content in load(number, pane):
                        put_content(scan, self._kind, pane, content)
                    known.add(pane)
            self._known[number] = known
            scan.close(index)

    def answer(self, now: int) -> WholeAnswer:
        """Return the answer over the current window, at an instant."""
        content = self.evaluator.answer(self._scans, now)
        evaluator = self.evaluator
        return WholeAnswer(content, dict(evaluator.stats()), evaluator.may_give_blank_nodes)

    def part(self, now: int) -> StateData:
        """Return the part of the answer that a bucket of keys gives, as plain data."""
        assert isinstance(self.evaluator, Parted), "it has buckets"  # noqa: S101
        return self.evaluator.part(self._scans, now)


def write_whole(config: SparqlConfig, answer: WholeAnswer) -> StateData:
    """Write an answer as plain data, for another process."""
    content = answer.content
    match content:
        case Solutions(_, rows, _):
            written = write_answer(config, rows)
        case Graph(triples):
            written = write_answer(config, triples)
        case Boolean(value):
            written = write_answer(config, (value,))
    return {
        "content": written,
        "is_ranked": isinstance(content, Solutions) and content.ranked,
        "stats": dict(answer.stats),
        "may_give_blank_nodes": answer.may_give_blank_nodes,
    }


def read_whole(config: SparqlConfig, state: StateData) -> WholeAnswer:
    """Read an answer written by `write_whole`."""
    read: tuple[Any, ...] = tuple(read_answer(config, state["content"]))
    content: Solutions | Graph | Boolean
    match config.form:
        case "SELECT":
            content = Solutions(config.variables, read, state["is_ranked"])
        case "CONSTRUCT":
            content = Graph(read)
        case "ASK":
            content = Boolean(read[0])
    return WholeAnswer(content, state["stats"], state["may_give_blank_nodes"])
