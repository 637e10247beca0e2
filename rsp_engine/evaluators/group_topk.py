"""The group top-k evaluator: an aggregate of each group of solutions, then the top k groups.

A query of one triple pattern has no solution that spans two panes, so each pane is matched and
aggregated once, and a window combines the partials of its panes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from rsp_engine.operators.aggregates.group_scores import GroupScores
from rsp_engine.operators.aggregates.groups import Groups
from rsp_engine.operators.sparql.pane_matcher import Matcher, MatcherConfig
from rsp_engine.operators.sparql.projector import Projector, holds_blank_nodes
from rsp_engine.operators.sparql.sparql_query import answer_content
from rsp_engine.operators.windows.count_windows import CountedScan
from rsp_engine.operators.windows.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import Store

    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.model.answers import Graph, Solutions
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.aggregates.groups import Grouping
    from rsp_engine.operators.aggregates.pane_partials import Totals
    from rsp_engine.operators.scoring.scoring_function import Scoring
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["GroupTopkConfig", "GroupTopkEvaluator"]


@dataclass(frozen=True, slots=True)
class GroupTopkConfig:
    """`scoring` is F over the variable of the aggregate, and `scored` the query for F as a term.

    `scored` is None if F is the aggregate itself. `projected` is the query for the rows: see
    `Projector`.
    """

    tag: ClassVar[str] = "Aggregated"
    scan_kind: ClassVar[ScanKind] = "solutions"

    query: SparqlConfig
    matching: MatcherConfig
    grouping: Grouping
    projected: SparqlConfig | None
    scoring: Scoring
    scored: SparqlConfig | None
    descending: bool
    k: int
    offset: int

    def evaluator(self, context: EvaluatorContext) -> GroupTopkEvaluator:
        """Return the evaluator of a run."""
        return GroupTopkEvaluator(self, context.store())


class GroupTopkEvaluator:
    """Ranks groups per window. Memory: the solutions of open windows, partials of their panes."""

    def __init__(self, config: GroupTopkConfig, store: Store) -> None:
        self.config = config
        self.may_give_blank_nodes = False
        self._matcher = Matcher(config.matching, store)
        self._projector = Projector(config.query, config.projected)
        topk = AggregateTopkConfig(config.k, function=config.grouping.function)
        self._group(AggregateTopk(topk, streaming=self._scored))

    def _group(self, aggregates: AggregateTopk) -> None:
        """Connect the groups and their scores with an operator."""
        config = self.config
        self._aggregates = aggregates
        self._groups = Groups(config.grouping, self._matcher.config, aggregates)
        self._scores = GroupScores(
            self._groups, config.scoring, config.scored, descending=config.descending
        )

    def _scored(self, totals: Totals) -> Floats:
        return self._scores(totals)

    def stats(self) -> dict[str, int | bool]:
        """Return the statistics of the last answer."""
        return {"exact": True}

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph:
        """Return the answer over the only scan, at an instant."""
        [scan] = scans
        assert isinstance(scan, CountedScan | TimedScan), "panes are matched once"  # noqa: S101
        for pane, matched in scan.fresh(self._matcher, now):
            self._groups.take(pane, matched)
        self._groups.expire(scan.closed)
        totals = self._aggregates.totals(scan.closed)
        ranking = self._aggregates.close(scan.closed)
        best = self._groups.bindings(ranking.keys[self.config.offset :].tolist(), totals)
        rows = self._projector.rows(best, now)
        self.may_give_blank_nodes |= holds_blank_nodes(rows)
        return answer_content(self.config.query, rows)

    def state(self) -> StateData:
        """Return the state as plain data."""
        return {
            "aggregates": self._aggregates.state(),
            "groups": self._groups.state(),
            "may_give_blank_nodes": self.may_give_blank_nodes,
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        config = self._aggregates.config
        self._group(AggregateTopk.restored(config, state["aggregates"], streaming=self._scored))
        self._groups.restore(state["groups"])
        self.may_give_blank_nodes = state["may_give_blank_nodes"]
