"""The group top-k evaluator: an aggregate of each group of solutions, then the top k groups.

A query of one triple pattern has no solution that spans two panes, so each pane is matched and
aggregated once, and a window combines the partials of its panes.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rsp_engine.model.terms.ntriples import read_rows
from rsp_engine.operators.aggregates.aggregate_topk import AggregateTopk, AggregateTopkConfig
from rsp_engine.operators.aggregates.group_scores import GroupScores
from rsp_engine.operators.aggregates.groups import Groups
from rsp_engine.operators.scoring.positions import instants
from rsp_engine.operators.sparql.pane_matcher import Matcher, MatcherConfig
from rsp_engine.operators.sparql.projector import Projector, holds_blank_nodes
from rsp_engine.operators.sparql.sparql_query import answer_content
from rsp_engine.operators.windows.count_windows import CountedScan
from rsp_engine.operators.windows.time_windows import TimedScan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyoxigraph import Store

    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.model.answers import Graph, Solutions
    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
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
        ranked, totals = self._rank(scans, now)
        best = self._groups.bindings(ranked[self.config.offset :], totals)
        return self._content(best, now)

    def part(self, scans: Sequence[Scan], now: int) -> StateData:
        """Return the k best groups of a bucket, each with all that its rank depends on."""
        ranked, totals = self._rank(scans, now)
        variable = self.config.grouping.variable
        terms = [binding.get(variable) for binding in self._groups.bindings(ranked, totals)]
        places = np.searchsorted(totals.keys, ranked)
        return {
            "order": self._scores.order_keys(terms),
            "times": instants(totals.positions[places]).tolist(),
            "keys": [self._groups.key_text(number) for number in ranked],
            "values": [None if term is None else str(term) for term in terms],
        }

    def combine(self, parts: Sequence[StateData], now: int) -> Solutions | Graph:
        """Return the k best groups of all buckets: by score, later arrival and larger key."""
        config = self.config
        columns = ("order", "times", "keys", "values")
        rows = [row for part in parts for row in zip(*map(part.get, columns), strict=True)]
        rows.sort(key=itemgetter(1, 2), reverse=True)
        rows.sort(key=itemgetter(0), reverse=config.descending)
        best = rows[config.offset : config.k]
        names = [config.matching.names[place] for place in config.grouping.keys]
        keys = read_rows([key for _, _, key, _ in best], len(names))
        values = read_rows([value or "" for *_, value in best], 1)
        bindings: list[Any] = [dict(zip(names, key, strict=True)) for key in keys]
        for binding, [value] in zip(bindings, values, strict=True):
            if value is not None:
                binding[config.grouping.variable] = value
        return self._content(bindings, now)

    def _rank(self, scans: Sequence[Scan], now: int) -> tuple[list[int], Totals]:
        """Return the numbers of the k best groups, best first, and the totals of all groups."""
        [scan] = scans
        assert isinstance(scan, CountedScan | TimedScan), "panes are matched once"  # noqa: S101
        for pane, matched in scan.fresh(self._matcher, now):
            self._groups.take(pane, matched)
        self._groups.expire(scan.closed)
        totals = self._aggregates.totals(scan.closed)
        return self._aggregates.close(scan.closed).keys.tolist(), totals

    def _content(self, best: Sequence[Mapping[str, Term]], now: int) -> Solutions | Graph:
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
