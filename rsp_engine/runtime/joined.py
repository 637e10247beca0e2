"""One evaluation of a ranked query that joins a window with a remote dataset: AcquaTop.

    pane -> candidates -> elected set -> fetch -> changed objects -> Topk+N -> ranking

The window is matched pane by pane; its objects go to Topk+N, or to an operator that keeps the
whole window where the policy looks at all of it. Before the window is ranked, the policy elects
keys to fetch, within the budget; what turns out to have changed is moved in the list.

Zahmatkesh, Della Valle: Continuous top-k approximated join of streaming and evolving distributed
data. Section 5, Algorithm 5.
"""

from __future__ import annotations

import logging
from math import inf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from rsp_engine.model.answers import Row, Solutions
from rsp_engine.model.candidates import Candidates
from rsp_engine.operators.matching import Matched, Matcher, Solution
from rsp_engine.operators.projecting import Projector, holds_blank_nodes
from rsp_engine.operators.time_windows import TimedScan
from rsp_engine.operators.topk import Ranking, TopkConfig
from rsp_engine.operators.topk_n import TopkN, TopkNConfig
from rsp_engine.operators.whole_window import WholeWindow
from rsp_engine.replica.asking import unaskable
from rsp_engine.runtime.judge import Judge
from rsp_engine.runtime.population import Member, Population
from rsp_engine.runtime.remote_values import RemoteValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyoxigraph import Store

    from rsp_engine.model.arrays import Integers
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.scan import Scan
    from rsp_engine.plan.joined import JoinedConfig
    from rsp_engine.runtime.refresh import Refresh, Refreshed

__all__ = ["Joined"]

_LOG = logging.getLogger(__name__)


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
        self._population = Population(config.arrivals)
        self._operator = self._made()
        self._judge = Judge(config, refresh) if config.is_judged else None
        self._taken: set[Pane] = set()
        self._count = 0
        self._has_warned = False
        self._stats: dict[str, Any] = {}

    def _made(self) -> TopkN | WholeWindow:
        config = self.config
        if self._refresh.plan.policy.proposer == "list":
            return TopkN(TopkNConfig(config.k, config.n, config.is_monotone), config.scores)
        return WholeWindow(TopkConfig(config.k), config.scores)

    def stats(self) -> dict[str, Any]:
        """Return what the last answer was made of, and what it cost."""
        return self._stats

    def answer(self, scans: Sequence[Scan], now: int) -> Solutions:
        """Return the answer over the content of the only scan, at an instant."""
        [scan] = scans
        assert isinstance(scan, TimedScan), "windows that count are not ranked here"  # noqa: S101
        window = scan.closed
        self._values.renew(self._refresh.begin(scan.interval().open))
        self._population.expire(window)
        self._change(self._refresh.pushed(now))
        panes = dict(scan.content())
        for pane, triples in panes.items():
            if pane not in self._taken:
                self._take(pane, self._matcher.match(triples, scan.times(pane), now))
                scan.release(pane)
        self._taken = set(panes)
        self._operator.settle(window)
        refreshed = self._fetch(window, scan.frame.step, now)
        self._change(refreshed.changed)
        ranking = self._operator.close(window)
        self._stats = self._told(ranking, refreshed, now)
        if self._judge is not None:
            self._stats |= self._judge.judge(ranking.keys, self._population, now)
        return self._solutions(ranking, now)

    def _take(self, pane: Pane, matched: Matched) -> None:
        """Give the objects of a pane to the operator."""
        members = list(self._members(pane, matched))
        if not members:
            return
        objects = self._population.join(members)
        keys = np.array([member.key for member in members], dtype=np.int64)
        remote = self._values.of(keys)
        self._operator.arrive(
            pane,
            objects,
            [member.position for member in members],
            [member.streaming for member in members],
            remote,
        )
        # A key that is known to have no value is not one that is unknown.
        none = objects[np.isnan(remote) & self._refresh.replica.is_known(keys)]
        if len(none):
            self._operator.change(none, np.full(len(none), np.nan))

    def _members(self, pane: Pane, matched: Matched) -> Iterator[Member]:
        """Yield the objects of a pane in the order of their arrival, each at its own position."""
        numbers = matched.numbers.tolist()
        for key, place in self._arrivals(matched):
            solution, streaming = matched.solutions[place], numbers[place]
            if isnan(streaming):
                self._warn(solution)
                streaming = -inf
            yield Member(solution, key, streaming, self._count, pane.last)
            self._count += 1

    def _arrivals(self, matched: Matched) -> Iterable[tuple[int, int]]:
        """Return the join key and the place of each arrival that counts, in order."""
        known = self._refresh.replica.keys
        found = []
        for place in matched.in_order(range(len(matched.solutions))):
            solution = matched.solutions[place]
            key = tuple([solution[at] for at in self.config.key])
            # A blank node is no other than itself, so nothing remote joins it.
            if key in known or unaskable(key) is None:
                found.append((known.number(key), place))
        if self.config.arrivals == "all":
            return found
        latest: dict[int, int] = {}
        for number, place in reversed(found):
            latest.setdefault(number, place)
        return reversed(latest.items())

    def _warn(self, solution: Solution) -> None:
        """Say, once, that what has no number ranks last."""
        if not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "?%s is no number in %s, so it ranks last", self.config.streaming, solution
            )

    def _fetch(self, window: int, step: int, now: int) -> Refreshed:
        """Let the policy elect, and fetch what it elects."""
        operator, population = self._operator, self._population
        keys = np.array(population.keys_of(operator.keys.tolist()), dtype=np.int64)
        _, first = np.unique(keys, return_index=True)  # of several objects of a key the best
        first.sort()
        candidates = Candidates(
            keys[first],
            operator.scores[first],
            operator.ends[first] - window + 1,
            self.config.k,
            step,
        )
        alive = population.keys()
        cold = alive[~self._refresh.replica.is_known(alive)]
        return self._refresh.fetch(candidates, cold, population.best_streaming(cold.tolist()), now)

    def _change(self, keys: Integers) -> None:
        """Move the objects of keys whose remote values are others now."""
        self._values.renew(keys)
        objects = self._population.of_keys(keys.tolist())
        if objects:
            members = [self._population[number] for number in objects]
            values = self._values.of(np.array([member.key for member in members], dtype=np.int64))
            self._operator.change(objects, values, [member.streaming for member in members])

    def _told(self, ranking: Ranking, refreshed: Refreshed, now: int) -> dict[str, Any]:
        replica = self._refresh.replica
        alive = self._population.keys()
        known = alive[replica.is_known(alive)]
        entries = replica.entries(known)
        if self._refresh.plan.is_pushed:
            is_fresh, stale = not refreshed.faults, 0
        else:
            is_fresh = bool((entries.last_refresh == now).all())
            stale = int(np.count_nonzero(entries.is_stale(now)))
        is_sure = ranking.is_exact and is_fresh and not refreshed.cold_misses
        several = self._values.several(known)
        told = {**refreshed.stats(), "stale": stale, "exact": is_sure and not several}
        return {**told, "several_solutions": several} if several else told

    def _solutions(self, ranking: Ranking, now: int) -> Solutions:
        """Return the rows of a ranking, with the ages of their remote values."""
        config, replica = self.config, self._refresh.replica
        members = [self._population[n] for n in ranking.keys[config.offset :].tolist()]
        numbers = np.array([member.key for member in members], dtype=np.int64)
        ages = (now - replica.entries(numbers).last_refresh).tolist()
        names = self._matcher.config.names
        objects = [
            {**dict(zip(names, m.solution, strict=True)), **self._values.solution(m.key)}
            for m in members
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
