"""One evaluation of a ranked query that joins a window with a remote dataset: AcquaTop.

    pane -> candidates -> elected set -> fetch -> changed objects -> Topk+N -> ranking

The window is matched pane by pane, and its solutions become objects. Before the window is ranked,
the policy elects keys to fetch, within the budget; what turns out to have changed is moved in the
list.

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 5, Algorithm 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.answers import Row, Solutions
from rsp_engine.model.candidates import Candidates
from rsp_engine.operators.matching import Matcher
from rsp_engine.operators.projecting import Projector, holds_blank_nodes
from rsp_engine.operators.time_windows import TimedScan
from rsp_engine.policies.voi import Voi
from rsp_engine.runtime.arrived import Arrived
from rsp_engine.runtime.grouped import Grouped
from rsp_engine.runtime.judge import Judge
from rsp_engine.runtime.prospect import Prospect
from rsp_engine.runtime.remote_values import RemoteValues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyoxigraph import Store

    from rsp_engine.model.arrays import Integers
    from rsp_engine.operators.scan import Scan
    from rsp_engine.operators.state import State
    from rsp_engine.operators.topk import Ranking
    from rsp_engine.plan.joined import JoinedConfig
    from rsp_engine.runtime.objects import Objects
    from rsp_engine.runtime.refresh import Refresh, Refreshed

__all__ = ["Joined"]


class Joined:
    """Ranks window by window. Memory: the objects of open windows, and the replica."""

    def __init__(self, config: JoinedConfig, store: Store, refresh: Refresh) -> None:
        assert config.matching is not None, "the planner says what to match"  # noqa: S101
        self.config = config
        self.may_give_blank_nodes = False
        self._refresh = refresh
        self._values = RemoteValues(refresh.replica, config)
        self._matcher = Matcher(config.matching, store)
        self._projector = Projector(config, config.projected)
        made = Arrived if config.grouping is None else Grouped
        self._objects: Objects = made(config, refresh, self._values)
        policy = refresh.plan.policy
        # Where changes are pushed there is nothing to expect: what is known is what is there.
        self._prospect = (
            Prospect(policy, config, self._objects, self._values)
            if isinstance(policy, Voi) and not refresh.plan.is_pushed
            else None
        )
        self._judge = Judge(config, refresh) if config.is_judged else None
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
        self._objects.expire(window)
        self._change(self._refresh.pushed(now))
        for pane, matched in scan.fresh(self._matcher, now):
            self._objects.take(pane, matched)
        self._objects.settle(window)
        if self._prospect is not None:
            self._prospect.begin(window, scan.frame.step)
        refreshed = self._fetch(window, scan.frame.step, now)
        self._change(refreshed.changed)
        ranking = self._ranking(window)
        self._stats = self._told(ranking, refreshed, now)
        if self._judge is not None:
            self._stats |= self._judge.judge(ranking.keys, self._objects, now)
        return self._solutions(ranking, now)

    def state(self) -> State:
        """Return all there is to know beside the replica, as plain data, to be restored from."""
        return {
            "objects": self._objects.state(),
            "may_give_blank_nodes": self.may_give_blank_nodes,
            "judged": None if self._judge is None else self._judge.state(),
            "learned": None if self._prospect is None else self._prospect.state(),
        }

    def restore(self, state: State) -> None:
        """Go on from a state; the replica is restored already."""
        self._values.renew(self._refresh.replica.held())
        self._objects.restore(state["objects"])
        self.may_give_blank_nodes = state["may_give_blank_nodes"]
        judged = state["judged"]
        if self._judge is not None:
            self._judge.restore(judged)
        learned = state["learned"]
        if self._prospect is not None:
            self._prospect.restore(learned)

    def _ranking(self, window: int) -> Ranking:
        """Close a window, and return its ranking: by the scores, or as the policy expects it."""
        if self._prospect is None:
            return self._objects.close(window)
        keys, scores = self._prospect.best()
        known = self._objects.close(window)
        is_same = np.array_equal(keys, known.keys)
        return known._replace(keys=keys, scores=scores, is_exact=known.is_exact and is_same)

    def _fetch(self, window: int, step: int, now: int) -> Refreshed:
        """Let the policy elect, and fetch what it elects."""
        objects = self._objects
        keys = objects.keys_of(objects.keys.tolist())
        _, first = np.unique(keys, return_index=True)  # of several objects of a key the best
        first.sort()
        candidates = Candidates(
            keys[first],
            objects.scores[first],
            objects.ends[first] - window + 1,
            self.config.k,
            step,
        )
        alive = objects.join_keys()
        # What is not known, or known to have no value, is in no list: it may have one by now.
        absent = alive[np.isnan(self._values.of(alive))]
        scores = objects.best_streaming(absent.tolist())
        return self._refresh.fetch(candidates, absent, scores, now, prospect=self._prospect)

    def _change(self, keys: Integers) -> None:
        """Move the objects of keys whose remote values are others now."""
        self._values.renew(keys)
        self._objects.change(keys)

    def _told(self, ranking: Ranking, refreshed: Refreshed, now: int) -> dict[str, Any]:
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
        several = self._values.several(known)
        told = {**refreshed.stats(), "stale": stale, "exact": is_sure and not several}
        return {**told, "several_solutions": several} if several else told

    def _solutions(self, ranking: Ranking, now: int) -> Solutions:
        """Return the rows of a ranking, with the ages of their remote values."""
        config, replica = self.config, self._refresh.replica
        numbers = ranking.keys[config.offset :].tolist()
        keys = self._objects.keys_of(numbers)
        ages = (now - replica.entries(keys).last_refresh).tolist()
        streamed = self._objects.bindings(numbers, now)
        objects = [
            {**known, **self._values.solution(key)}
            for known, key in zip(streamed, keys.tolist(), strict=True)
        ]
        found = self._projector.rows(objects, now)
        self.may_give_blank_nodes |= holds_blank_nodes(found)
        rows = [
            Row(row.bindings, rank, row.score, age)
            for rank, (row, age) in enumerate(
                zip(found, ages, strict=True), start=1 + config.offset
            )
        ]
        return Solutions(config.variables, tuple(rows), ranked=True)
