"""One evaluation of a ranked query that joins a window with a remote dataset: AcquaTop.

    pane -> candidates -> elected set -> fetch -> changed objects -> Topk+N -> ranking

The window is matched pane by pane, and its solutions become objects. Before the window is ranked,
the policy elects keys to fetch, within the budget; what turns out to have changed is moved in the
list. As long as all scores are numbers whose order float64 has, and keys have one remote solution,
this is Topk+N's list. From the first other one on, the objects are ranked by terms, with a row for
each remote solution.

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 5, Algorithm 5.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.evaluators.acquatop.arrival_objects import ArrivalObjects
from rsp_engine.evaluators.acquatop.group_objects import GroupObjects
from rsp_engine.evaluators.acquatop.judge import OracleJudge
from rsp_engine.evaluators.acquatop.plain_scores import PlainScores
from rsp_engine.evaluators.acquatop.remote_values import RemoteValues
from rsp_engine.evaluators.acquatop.term_ranking import ByTerms, TermRanking
from rsp_engine.evaluators.acquatop.voi_outlook import VoiOutlook
from rsp_engine.model.answers import Row, Solutions
from rsp_engine.model.candidates import Candidates
from rsp_engine.model.terms.term_order import full_key
from rsp_engine.operators.sparql.pane_matcher import Matcher
from rsp_engine.operators.sparql.projector import Projector, holds_blank_nodes
from rsp_engine.operators.topk.contract import TopkAnswer
from rsp_engine.operators.windows.time_windows import TimedScan
from rsp_engine.policies.voi import Voi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyoxigraph import Store

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.acquatop.ranked_objects import RankedObjects
    from rsp_engine.evaluators.service.refresh import Refresh, RefreshReport
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.windows.scan import Scan
    from rsp_engine.replica.pattern import RemoteSolution

__all__ = ["AcquaTopEvaluator"]


class AcquaTopEvaluator:
    """Ranks window by window. Memory: the objects of open windows, and the replica."""

    def __init__(self, config: AcquaTopConfig, store: Store, refresh: Refresh) -> None:
        assert config.matching is not None, "the planner says what to match"  # noqa: S101
        self.config = config
        self.may_give_blank_nodes = False
        self._refresh = refresh
        self._scores = PlainScores(config)
        self._by_terms = ByTerms(config)
        self._values = RemoteValues(refresh.replica, config, self._scores)
        self._matcher = Matcher(config.matching, store)
        self._projector = Projector(config, config.projected)
        made = ArrivalObjects if config.grouping is None else GroupObjects
        self._objects: RankedObjects = made(config, refresh, self._values, self._scores)
        policy = refresh.plan.policy
        # Where changes are pushed there is nothing to expect: what is known is what is there.
        self._prospect = (
            VoiOutlook(policy, config, self._objects, self._values)
            if isinstance(policy, Voi) and not refresh.plan.is_pushed
            else None
        )
        self._ranked: TermRanking | None = None  # of the window at hand, until something changes
        self._judge = OracleJudge(config, refresh, self._scores) if config.is_judged else None
        self._stats: dict[str, Any] = {}

    def stats(self) -> dict[str, Any]:
        """Return what the last answer was made of, and what it cost."""
        return self._stats

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions:
        """Return the answer over the content of the only scan, at an instant."""
        [scan] = scans
        assert isinstance(scan, TimedScan), "windows that count are not ranked here"  # noqa: S101
        window = scan.closed
        self._values.renew(self._refresh.begin(scan.interval().open))
        left = self._objects.expire(window)
        self._change(self._refresh.pushed(now))
        for pane, matched in scan.fresh(self._matcher, now):
            self._objects.take(pane, matched)
        self._objects.settle(window)
        self._ranked = None
        if self._prospect is not None and self._scores.is_plain:
            self._prospect.begin(window, scan.frame.step)
        refreshed = self._fetch(window, scan.frame.step, now)
        self._change(refreshed.changed)
        ranking, remote = self._ranking(window, now)
        self._stats = self._told(ranking, refreshed, now)
        if self._judge is not None:
            self._stats |= self._judge.judge(ranking.keys, self._objects, now)
        found = self._solutions(ranking, remote, now)
        self._forget(left)
        return found

    def _forget(self, left: Integers) -> None:
        """Forget keys that neither an open window nor the replica holds."""
        gone = self._refresh.forget(left, self._objects.holds)
        self._objects.forget(gone)
        if self._prospect is not None:
            self._prospect.forget(gone)

    def state(self) -> StateData:
        """Return all there is to know beside the replica, as plain data, to be restored from."""
        return {
            "scores": self._scores.state(),
            "objects": self._objects.state(),
            "may_give_blank_nodes": self.may_give_blank_nodes,
            "judged": None if self._judge is None else self._judge.state(),
            "learned": None if self._prospect is None else self._prospect.state(),
        }

    def restore(self, state: StateData) -> None:
        """Go on from a state; the replica is restored already."""
        self._scores.restore(state["scores"])
        self._values.renew(self._refresh.replica.held())
        self._objects.restore(state["objects"])
        self.may_give_blank_nodes = state["may_give_blank_nodes"]
        judged = state["judged"]
        if self._judge is not None:
            self._judge.restore(judged)
        learned = state["learned"]
        if self._prospect is not None:
            self._prospect.restore(learned)

    def _ranking(self, window: int, now: int) -> tuple[TopkAnswer, Sequence[RemoteSolution]]:
        """Close a window, and return its ranking, with the remote solution of each object.

        It is by the scores, or as the policy expects it.
        """
        expected = None
        if self._prospect is not None and self._scores.is_plain:
            expected = self._prospect.best()
        ranking = self._objects.close(window)
        if not self._scores.is_plain:
            return self._ranking_by_terms(window, now)
        if expected is not None:
            keys, scores = expected
            is_same = np.array_equal(keys, ranking.keys)
            is_exact = ranking.is_exact and is_same
            ranking = ranking._replace(keys=keys, scores=scores, is_exact=is_exact)
        keys = self._objects.keys_of(ranking.keys.tolist())
        return ranking, [self._values.solution(key) for key in keys.tolist()]

    def _ranking_by_terms(
        self, window: int, now: int
    ) -> tuple[TopkAnswer, Sequence[RemoteSolution]]:
        found = self._ranked_by_terms(now).best(self.config.k)
        self._values.use(self._objects.keys_of(found.keys.tolist()))
        return TopkAnswer(window, found.keys, found.scores), found.solutions

    def _ranked_by_terms(self, now: int) -> TermRanking:
        """Rank all rows of the window by terms."""
        if self._ranked is None:
            members = self._objects.members()
            streamed = self._objects.terms(members.numbers.tolist(), now)
            remote = self._values.solutions(members.keys)
            self._ranked = self._by_terms.rank(members, streamed, remote, now)
        return self._ranked

    def _listed(self, now: int) -> tuple[Integers, Floats, Integers]:
        """Return the objects among which the policy may elect, best first, and their ends."""
        objects = self._objects
        if self._scores.is_plain:
            return objects.keys, objects.scores, objects.ends
        ranking = self._ranked_by_terms(now)
        if self._refresh.plan.policy.proposer == "list":
            return ranking.listed(self.config.k + self.config.n)
        return ranking[:3]

    def _fetch(self, window: int, step: int, now: int) -> RefreshReport:
        """Let the policy elect, and fetch what it elects."""
        objects = self._objects
        numbers, ranked, ends = self._listed(now)
        keys = objects.keys_of(numbers.tolist())
        _, first = np.unique(keys, return_index=True)  # of several objects of a key the best
        first.sort()
        lives = ends[first] - window + 1
        candidates = Candidates(keys[first], ranked[first], lives, self.config.k, step)
        alive = objects.join_keys()
        # What is not known, or known to have no value, is in no list: it may have one by now.
        absent = alive[np.isnan(self._values.of(alive))]
        scores = objects.best_streaming(absent.tolist())
        prospect = self._prospect if self._scores.is_plain else None
        return self._refresh.fetch(candidates, absent, scores, now, prospect=prospect)

    def _change(self, keys: Integers) -> None:
        """Move the objects of keys whose remote values are others now."""
        if len(keys):
            self._ranked = None
        self._values.renew(keys)
        self._objects.change(keys)

    def _told(self, ranking: TopkAnswer, refreshed: RefreshReport, now: int) -> dict[str, Any]:
        refresh, replica = self._refresh, self._refresh.replica
        alive = self._objects.join_keys()
        known = alive[replica.is_known(alive)]
        entries = replica.entries(known)
        if refresh.plan.is_pushed:
            is_fresh, stale = not refresh.has_missed_a_change, 0
        else:
            is_fresh = bool((entries.last_refresh == now).all())
            stale = int(np.count_nonzero(entries.is_stale(now)))
        is_sure = ranking.is_exact and is_fresh and len(known) == len(alive)
        return {**refreshed.stats(), "stale": stale, "exact": is_sure}

    def _solutions(
        self, ranking: TopkAnswer, remote: Sequence[RemoteSolution], now: int
    ) -> Solutions:
        """Return the rows of a ranking, with the ages of their remote values."""
        config, replica = self.config, self._refresh.replica
        numbers = ranking.keys.tolist()
        keys = self._objects.keys_of(numbers)
        ages = (now - replica.entries(keys).last_refresh).tolist()
        streamed = self._objects.bindings(numbers, now)
        objects = [{**known, **found} for known, found in zip(streamed, remote, strict=True)]
        rows = [
            row._replace(age=age)
            for row, age in zip(self._projector.rows(objects, now), ages, strict=True)
        ]
        found = list(self._in_order(ranking, rows))[config.offset : config.k]
        self.may_give_blank_nodes |= holds_blank_nodes(found)
        ranked = (row._replace(rank=rank) for rank, row in enumerate(found, start=1))
        return Solutions(config.variables, tuple(ranked), ranked=True)

    def _in_order(self, ranking: TopkAnswer, rows: Sequence[Row]) -> Iterator[Row]:
        """Yield the rows of a ranking; equal ones of one object are in the order of their terms."""
        names = self.config.variables
        placed = zip(ranking.keys.tolist(), ranking.scores.tolist(), rows, strict=True)
        for _, equal in groupby(placed, key=itemgetter(0, 1)):
            same = [row for *_, row in equal]
            if len(same) > 1:
                same.sort(key=lambda row: [full_key(row.bindings.get(name)) for name in names])
            yield from same
