"""R2R for ranked queries over groups: an aggregate of each group of solutions, then the k best.

A query of one triple pattern has no solution that spans two panes, so each pane is matched and
aggregated once, and a window has the partials of its panes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.operators.aggregates import AggregateConfig, Aggregates
from rsp_engine.operators.asking import GeneralConfig, content_of
from rsp_engine.operators.count_windows import CountedScan
from rsp_engine.operators.groups import Grouping, Groups
from rsp_engine.operators.matching import Matcher, Matching
from rsp_engine.operators.projecting import Projector, holds_blank_nodes
from rsp_engine.operators.scoring import Scoring, evaluate
from rsp_engine.operators.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import Store

    from rsp_engine.model.answers import Graph, Solutions
    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.scan import Scan
    from rsp_engine.operators.state import State

__all__ = ["Aggregated", "AggregatedConfig"]


@dataclass(frozen=True, slots=True)
class AggregatedConfig(GeneralConfig):
    """The text is that of the general path: what the query means.

    `scoring` is F, over the variable of the aggregate. `projected` makes rows: see `Projector`.
    """

    matching: Matching | None = None
    grouping: Grouping | None = None
    projected: GeneralConfig | None = None
    scoring: Scoring | None = None
    descending: bool = True
    k: int = 1
    offset: int = 0

    def scores(self, aggregates: Floats) -> Floats:
        """Return F of aggregates: larger is better."""
        assert self.scoring is not None, "the planner says how to score"  # noqa: S101
        assert self.grouping is not None, "the planner says how to group"  # noqa: S101
        found = evaluate(self.scoring, {self.grouping.variable: aggregates})
        return found if self.descending else -found


class Aggregated:
    """Ranks window by window. Memory: the solutions of open windows, partials of their panes."""

    def __init__(self, config: AggregatedConfig, store: Store) -> None:
        assert config.matching is not None, "the planner says what to match"  # noqa: S101
        assert config.grouping is not None, "the planner says how to group"  # noqa: S101
        self.config = config
        self.may_give_blank_nodes = False
        self._matcher = Matcher(config.matching, store)
        self._projector = Projector(config, config.projected)
        asked = AggregateConfig(config.k, function=config.grouping.function)
        self._aggregates = Aggregates(asked, alone=config.scores)
        self._groups = self._grouped()

    def _grouped(self) -> Groups:
        assert self.config.grouping is not None, "the planner says how to group"  # noqa: S101
        return Groups(self.config.grouping, self._matcher.config, self._aggregates)

    def stats(self) -> dict[str, int | bool]:
        """Return what an answer says of itself."""
        return {"exact": True}

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions | Graph:
        """Return the answer over the content of the only scan, at an instant."""
        [scan] = scans
        assert isinstance(scan, CountedScan | TimedScan), "panes are looked at once"  # noqa: S101
        for pane, matched in scan.fresh(self._matcher, now):
            self._groups.take(pane, matched.read())
        self._groups.expire(scan.closed)
        ranking = self._aggregates.close(scan.closed)
        best = self._groups.bindings(ranking.keys[self.config.offset :].tolist(), now)
        rows = self._projector.rows(best, now)
        self.may_give_blank_nodes |= holds_blank_nodes(rows)
        return content_of(self.config, rows)

    def state(self) -> State:
        """Return all there is to know, as plain data, to be restored from."""
        return {
            "aggregates": self._aggregates.state(),
            "groups": self._groups.state(),
            "may_give_blank_nodes": self.may_give_blank_nodes,
        }

    def restore(self, state: State) -> None:
        """Go on from a state."""
        config, scores = self._aggregates.config, self.config.scores
        self._aggregates = Aggregates.restored(config, state["aggregates"], alone=scores)
        self._groups = self._grouped()
        self._groups.restore(state["groups"])
        self.may_give_blank_nodes = state["may_give_blank_nodes"]
