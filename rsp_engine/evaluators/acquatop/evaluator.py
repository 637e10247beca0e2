"""The AcquaTop evaluator: ranked queries that join a window with a remote dataset.

    pane -> candidates -> elected set -> fetch -> changed objects -> Topk+N -> ranking

The window is matched pane by pane, and its solutions become objects. Before the window is ranked,
the policy elects keys to fetch, within the budget, and changed objects move in the list. This is
the list of Topk+N as long as float64 preserves the order of all scores, and each key has at most
one remote solution. From the first exception on, objects are ranked by terms, with a row for each
remote solution.

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 5, Algorithm 5.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.evaluators.acquatop.arrival_objects import ArrivalObjects, arrivals_operator
from rsp_engine.evaluators.acquatop.plain_scores import PlainScores, RemoteValues
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
    from rsp_engine.evaluators.acquatop.judge import OracleJudge
    from rsp_engine.evaluators.acquatop.ranked_objects import RankedObjects
    from rsp_engine.evaluators.acquatop.term_ranking import ByTerms, TermRanking
    from rsp_engine.evaluators.service.refresh import Refresh, RefreshReport
    from rsp_engine.evaluators.service.shared_replica import News
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.operators.windows.scan import Scan
    from rsp_engine.replica.pattern import RemoteSolution

__all__ = ["AcquaTopEvaluator"]


class AcquaTopEvaluator:
    """Ranks window by window. Memory: the objects of open windows, and the replica."""

    def __init__(self, config: AcquaTopConfig, store: Store, refresh: Refresh) -> None:
        self.config = config
        self.may_give_blank_nodes = False
        self._refresh = refresh
        self._scores = PlainScores(config)
        self._values = RemoteValues(refresh.replica, config, self._scores)
        self._matcher = Matcher(config.matching, store)
        self._projector = Projector(config.query, config.projected)
        self._objects = self._new_objects()
        policy = refresh.plan.policy
        # With a change feed the replica is up to date: there is nothing to predict.
        self._outlook = (
            VoiOutlook(policy, config.k, self._objects, self._values, self._scores)
            if isinstance(policy, Voi) and not refresh.plan.is_pushed
            else None
        )
        refresh.serve(self._objects.holds)
        self._prepared: int | None = None
        self._left = np.empty(0, dtype=np.int64)
        self._ranked: TermRanking | None = None  # cached until an object changes
        self._judge = self._new_judge() if config.is_judged else None
        self._stats: dict[str, Any] = {}

    @cached_property
    def _by_terms(self) -> ByTerms:
        # Most runs rank by float64 alone.
        from rsp_engine.evaluators.acquatop.term_ranking import ByTerms

        return ByTerms(self.config)

    def _new_judge(self) -> OracleJudge:
        from rsp_engine.evaluators.acquatop.judge import OracleJudge

        return OracleJudge(self.config, self._refresh, self._scores)

    def _new_objects(self) -> RankedObjects:
        config, parts = self.config, (self._refresh, self._values, self._scores)
        if config.grouping is not None:
            from rsp_engine.evaluators.acquatop.group_objects import GroupObjects

            return GroupObjects(config, config.grouping, *parts)
        if config.memory == "list":
            from rsp_engine.evaluators.acquatop.listed_objects import ListedObjects

            return ListedObjects(config, *parts)
        operator = arrivals_operator(config, self._refresh.plan.policy, self._scores)
        return ArrivalObjects(config, *parts, operator)

    def stats(self) -> dict[str, Any]:
        """Return the cost and the quality of the last answer."""
        return self._stats

    def prepare(self, scans: Sequence[Scan], now: int) -> None:
        """Take the panes of an instant, and bid for the budget of a service, if there is one."""
        [scan] = scans
        assert isinstance(scan, TimedScan), "AcquaTop ranks time windows only"  # noqa: S101
        window = scan.closed
        self._forget_numbers(self._refresh.freed())
        self._values.renew(self._refresh.begin(scan.interval().open))
        self._left = self._objects.expire(window)
        self._change(self._refresh.pushed(now))
        for pane, matched in scan.fresh(self._matcher, now):
            self._objects.take(pane, matched)
        self._objects.settle(window)
        self._ranked = None
        if self._outlook is not None and self._scores.is_plain:
            self._outlook.begin(window, scan.frame.step)
        if self._refresh.budget is not None:
            self._bid(now)
        self._prepared = now

    def _bid(self, now: int) -> None:
        absent = self._absent()  # records the kinds of all scores
        if self._outlook is not None and self._scores.is_plain:
            self._refresh.bid(absent, now, self._outlook.worth())

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions:
        """Return the answer over the only scan, at an instant."""
        if self._prepared != now:
            self.prepare(scans, now)
        self._prepared = None
        [scan] = scans
        assert isinstance(scan, TimedScan), "AcquaTop ranks time windows only"  # noqa: S101
        window = scan.closed
        self._hear(self._refresh.news())
        refreshed = self._fetch(window, scan.frame.step, now)
        self._change(refreshed.changed)
        ranking, remote = self._ranking(window, now)
        self._stats = self._statistics(ranking, refreshed, now)
        if self._judge is not None:
            self._stats |= self._judge.judge(ranking.keys, self._objects, now)
        solutions = self._solutions(ranking, remote, now)
        self._forget_numbers(self._refresh.forget(self._left))
        return solutions

    def _hear(self, news: Sequence[News]) -> None:
        """Take what other queries have fetched since this one was prepared."""
        for each in news:
            if self._outlook is not None and self._scores.is_plain:
                answered = each.answered[self._objects.holds(each.answered)]
                self._outlook.learn_fetched(answered, each.changed)
            else:
                self._change(each.changed)

    def _forget_numbers(self, gone: Integers) -> None:
        """Forget keys that are neither in an open window nor in the replica."""
        self._objects.forget(gone)
        if self._outlook is not None:
            self._outlook.forget(gone)

    def state(self) -> StateData:
        """Return the state as plain data, without the replica, which is saved on its own."""
        return {
            "scores": self._scores.state(),
            "objects": self._objects.state(),
            "may_give_blank_nodes": self.may_give_blank_nodes,
            "judged": None if self._judge is None else self._judge.state(),
            "learned": None if self._outlook is None else self._outlook.state(),
        }

    def restore(self, state: StateData) -> None:
        """Restore a saved state. The replica must be restored before."""
        self._scores.restore(state["scores"])
        self._values.renew(self._refresh.replica.known_keys())
        self._objects.restore(state["objects"])
        self.may_give_blank_nodes = state["may_give_blank_nodes"]
        judged = state["judged"]
        if self._judge is not None:
            self._judge.restore(judged)
        learned = state["learned"]
        if self._outlook is not None:
            self._outlook.restore(learned)

    def _ranking(self, window: int, now: int) -> tuple[TopkAnswer, Sequence[RemoteSolution]]:
        """Close a window; return its ranking, with the remote solution of each object.

        The order is that of the scores, or, under AT-VOI, of the expected gains.
        """
        expected = None
        if self._scores.is_plain:
            self._objects.refill(window)
        if self._outlook is not None and self._scores.is_plain:
            expected = self._outlook.best()
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
        best = self._ranked_by_terms(now).best(self.config.k)
        self._values.use(self._objects.keys_of(best.keys.tolist()))
        has_all = self._objects.has_all
        return TopkAnswer(window, best.keys, best.scores, has_all, has_all), best.solutions

    def _ranked_by_terms(self, now: int) -> TermRanking:
        """Rank all rows of the window by terms, once."""
        if self._ranked is None:
            members = self._objects.members()
            streamed = self._objects.terms(members.numbers.tolist(), now)
            remote = self._values.solutions(members.keys)
            self._ranked = self._by_terms.rank(members, streamed, remote, now)
        return self._ranked

    def _listed(self, now: int) -> tuple[Integers, Floats, Integers]:
        """Return the objects that the policy may elect, best first, with scores and ends."""
        objects = self._objects
        if self._scores.is_plain:
            return objects.keys, objects.scores, objects.ends
        ranking = self._ranked_by_terms(now)
        if self._refresh.plan.policy.proposer == "list":
            return ranking.listed(self.config.k + self.config.n)
        return ranking[:3]

    def _fetch(self, window: int, step: int, now: int) -> RefreshReport:
        """Let the policy elect keys, and fetch them."""
        objects = self._objects
        numbers, ranked, ends = self._listed(now)
        keys = objects.keys_of(numbers.tolist())
        _, first = np.unique(keys, return_index=True)  # the best object of each key
        first.sort()
        lives = ends[first] - window + 1
        candidates = Candidates(keys[first], ranked[first], lives, self.config.k, step)
        absent = self._absent()
        scores = objects.best_streaming(absent.tolist())
        outlook = self._outlook if self._scores.is_plain else None
        return self._refresh.fetch(candidates, absent, scores, now, outlook=outlook)

    def _absent(self) -> Integers:
        """Return the join keys that are cold, or known to have no value.

        They are in no list, but may have a value now.
        """
        alive = self._objects.join_keys()
        return alive[np.isnan(self._values.of(alive))]

    def _change(self, keys: Integers) -> None:
        """Update the objects of changed keys."""
        if len(keys):
            self._ranked = None
        self._values.renew(keys)
        self._objects.change(keys)

    def _statistics(
        self, ranking: TopkAnswer, refreshed: RefreshReport, now: int
    ) -> dict[str, Any]:
        refresh, replica = self._refresh, self._refresh.replica
        alive = self._objects.join_keys()
        known = alive[replica.is_known(alive)]
        entries = replica.entries(known)
        if refresh.plan.is_pushed:
            is_fresh, stale = not refresh.has_missed_a_change, 0
        else:
            is_fresh = bool((entries.last_refresh == now).all())
            stale = int(np.count_nonzero(entries.is_stale(now)))
        is_exact = ranking.is_exact and is_fresh and len(known) == len(alive)
        belief = {}
        if self._outlook is not None and self._scores.is_plain:
            belief = {"belief": self._outlook.belief()}
        return {**refreshed.stats(), "stale": stale, "exact": is_exact, **belief}

    def _solutions(
        self, ranking: TopkAnswer, remote: Sequence[RemoteSolution], now: int
    ) -> Solutions:
        """Return the rows of a ranking, with the ages of their remote values."""
        config, replica = self.config, self._refresh.replica
        numbers = ranking.keys.tolist()
        keys = self._objects.keys_of(numbers)
        ages = (now - replica.entries(keys).last_refresh).tolist()
        streamed = self._objects.bindings(numbers, now)
        objects = [{**local, **fetched} for local, fetched in zip(streamed, remote, strict=True)]
        rows = [
            row._replace(age=age)
            for row, age in zip(self._projector.rows(objects, now), ages, strict=True)
        ]
        shown = list(self._in_order(ranking, rows))[config.offset : config.k]
        self.may_give_blank_nodes |= holds_blank_nodes(shown)
        ranked = (row._replace(rank=rank) for rank, row in enumerate(shown, start=1))
        return Solutions(config.query.variables, tuple(ranked), ranked=True)

    def _in_order(self, ranking: TopkAnswer, rows: Sequence[Row]) -> Iterator[Row]:
        """Yield the rows of a ranking, with equal rows of an object in term order."""
        names = self.config.query.variables
        placed = zip(ranking.keys.tolist(), ranking.scores.tolist(), rows, strict=True)
        for _, equal in groupby(placed, key=itemgetter(0, 1)):
            same = [row for *_, row in equal]
            if len(same) > 1:
                same.sort(key=lambda row: [full_key(row.bindings.get(name)) for name in names])
            yield from same
