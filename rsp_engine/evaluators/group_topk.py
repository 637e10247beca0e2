"""The group top-k evaluator: an aggregate of each group of solutions, then the top k groups.

A query of one triple pattern has no solution that spans two panes, so each pane is matched and
aggregated once, and a window combines the partials of its panes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from rsp_engine.operators.aggregates.group_scores import GroupScores
from rsp_engine.operators.aggregates.groups import Grouping, Groups
from rsp_engine.operators.sparql.pane_matcher import Matcher, MatcherConfig
from rsp_engine.operators.sparql.projector import Projector, holds_blank_nodes
from rsp_engine.operators.sparql.sparql_query import SparqlConfig, answer_content
from rsp_engine.operators.windows.count_windows import CountedScan
from rsp_engine.operators.windows.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import Store

    from rsp_engine.model.answers import Graph, Solutions
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.aggregates.pane_partials import Totals
    from rsp_engine.operators.scoring.scoring_function import Scoring
    from rsp_engine.operators.windows.scan import Scan

__all__ = ["GroupTopkConfig", "GroupTopkEvaluator"]


@dataclass(frozen=True, slots=True)
class GroupTopkConfig(SparqlConfig):
    """The text is that of the general path, and defines what the query means.

    `scoring` is F over the variable of the aggregate, and `scored` the query for F as a term; None
    if F is the aggregate itself. `projected` is the query for the rows: see `Projector`.
    """

    tag: ClassVar[str] = "Aggregated"

    matching: MatcherConfig | None = None
    grouping: Grouping | None = None
    projected: SparqlConfig | None = None
    scoring: Scoring | None = None
    scored: SparqlConfig | None = None
    descending: bool = True
    k: int = 1
    offset: int = 0


class GroupTopkEvaluator:
    """Ranks groups per window. Memory: the solutions of open windows, partials of their panes."""

    def __init__(self, config: GroupTopkConfig, store: Store) -> None:
        assert config.matching is not None, "the planner sets matching"  # noqa: S101
        assert config.grouping is not None, "the planner sets grouping"  # noqa: S101
        self.config = config
        self.may_give_blank_nodes = False
        self._matcher = Matcher(config.matching, store)
        self._projector = Projector(config, config.projected)
        topk = AggregateTopkConfig(config.k, function=config.grouping.function)
        self._group(AggregateTopk(topk, streaming=self._scored))

    def _group(self, aggregates: AggregateTopk) -> None:
        """Connect the groups and their scores with an operator."""
        config = self.config
        assert config.grouping is not None, "the planner sets grouping"  # noqa: S101
        assert config.scoring is not None, "the planner sets scoring"  # noqa: S101
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
            self._groups.take(pane, matched.read())
        self._groups.expire(scan.closed)
        ranking = self._aggregates.close(scan.closed)
        best = self._groups.bindings(ranking.keys[self.config.offset :].tolist())
        rows = self._projector.rows(best, now)
        self.may_give_blank_nodes |= holds_blank_nodes(rows)
        return answer_content(self.config, rows)

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
