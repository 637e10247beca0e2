"""The workload of an experiment: a ranked query, the content of its windows, and its service.

All runs over the same data share a workload: the stream is matched once. The query ranks by the
score of AcquaTop, section 6.1,

    score = 0.7 norm(mn) + 0.3 norm(dfc)

where mn is the number of mentions of a user, with norm by the least and the largest value in the
data. The paper does not give the weights; these are those of its program.

The stream has a triple for each mention, and the query counts those in the window; or each mention
carries mn as a value, as in Listing 1 of the paper, and the latest value in the window counts. The
list is rebuilt for each window in the first case, and maintained by Topk+N in the second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple
from typing import Literal as OneOf

import numpy as np
from pyoxigraph import Literal, NamedNode, Store, Triple

from rsp_engine.drivers.bindings import connect
from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.experiments.datasets.dataset import DFC, MENTIONS_PREDICATE, USER
from rsp_engine.grammar import check
from rsp_engine.operators.sparql.pane_matcher import Matcher
from rsp_engine.operators.topk.contract import in_panes
from rsp_engine.options import WindowOptions
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from rsp_engine.replica.endpoints.endpoint import UNLIMITED
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.windows import Pane, TimeFrame
    from rsp_engine.operators.sparql.pane_matcher import PaneSolutions

__all__ = [
    "SERVICE",
    "STREAM",
    "WEIGHTS",
    "Content",
    "MentionStream",
    "ScoreBounds",
    "Workload",
    "make_workload",
    "query_text",
    "workload_of",
]

WEIGHTS = (0.7, 0.3)
"""The weights of mn and of dfc in the program of the authors."""

STREAM = "http://example.org/mentions"
SERVICE = "http://example.org/users/sparql"
_POST = "http://example.org/post/"
_COUNT = "http://example.org/mentionCount"

Content = OneOf["posts", "counts"]
"""What the stream tells of a mention: its post, or the mentions of the user so far."""


class ScoreBounds(NamedTuple):
    """The least and the largest mn and dfc, by which the score is normalised."""

    mn: tuple[int, int]
    dfc: tuple[float, float]


def query_text(bounds: ScoreBounds, frame: TimeFrame, k: int, content: Content = "posts") -> str:
    """Return the query for the k users with the best scores of each window."""
    (fewest, most), (least, largest) = bounds
    # Where all values are equal, any positive divisor will do.
    counted = "COUNT(?post)" if content == "posts" else "?mn"
    mn = f"({counted} - {fewest}) / {max(most - fewest, 1)}e0"
    pattern = (
        f"?post <{MENTIONS_PREDICATE}> ?user" if content == "posts" else f"?user <{_COUNT}> ?mn"
    )
    grouping = "GROUP BY ?user ?dfc\n" if content == "posts" else ""
    dfc = f"(?dfc - ({least:.17e})) / {max(largest - least, 1e-9):.17e}"
    return f"""PREFIX : <http://example.org/>
REGISTER RSTREAM :best AS
SELECT ?user ?dfc
FROM NAMED WINDOW :recent ON STREAM <{STREAM}> [RANGE {frame.range}ms STEP {frame.step}ms]
WHERE {{
  WINDOW :recent {{ {pattern} }}
  SERVICE <{SERVICE}> {{ ?user <{DFC}> ?dfc }}
}}
{grouping}ORDER BY DESC({WEIGHTS[0]}e0 * ({mn}) + {WEIGHTS[1]}e0 * ({dfc}))
LIMIT {k}
"""  # noqa: S608 - it is no SQL


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """The windows of a query, numbered from 0, and the history of its service.

    `contents` are the solutions of each pane of the stream, in the order of time. `users` are in
    the order of their numbers. `mentions` is the stream that was matched.
    """

    bounds: ScoreBounds
    frame: TimeFrame
    windows: int
    contents: tuple[tuple[Pane, PaneSolutions], ...]
    users: tuple[NamedNode, ...]
    endpoint: RecordedEndpoint
    mentions: MentionStream

    @property
    def closes(self) -> tuple[int, ...]:
        """The instants at which the windows close."""
        return tuple(self.frame.interval(index).close for index in range(self.windows))

    def initial(self) -> Floats:
        """Return the dfc of each user with which every replica starts, NaN if there is none."""
        snapshot = self.endpoint.snapshot(UNLIMITED, self.frame.interval(0).open).answers
        values = (snapshot.get((user,)) for user in self.users)
        return np.array([float(of[0]["dfc"].value) if of else np.nan for of in values])

    def streamed(self, index: int) -> Integers:
        """Return mn of each user in a window, 0 for a user without a mention."""
        edges, stream = self.frame.interval(index), self.mentions
        is_inside = (edges.open < stream.times) & (stream.times <= edges.close)
        values, users = stream.values[is_inside], stream.users[is_inside]
        mn = np.zeros(len(self.users), dtype=np.int64)
        if stream.content == "counts":
            mn[users] = values  # the last one wins
        else:
            _, first = np.unique(values * len(mn) + users, return_index=True)
            np.add.at(mn, users[first], 1)
        return mn

    def changes(self) -> list[tuple[int, list[Triple]]]:
        """Return the elements of a feed that pushes every change of the service, with times."""
        changes = [
            (time, Triple(NamedNode(user.value), NamedNode(DFC), solution["dfc"]))
            for time, (user,), [solution] in self.endpoint.changes()
        ]
        by_time = groupby(changes, key=itemgetter(0))
        return [(time, [triple for _, triple in together]) for time, together in by_time]

    def plan(self, k: int) -> PhysicalPlan:
        """Return the plan of the query for the k best users."""
        return _plan(self.bounds, self.frame, k, self.mentions.content)


@lru_cache(maxsize=64)
def _plan(bounds: ScoreBounds, frame: TimeFrame, k: int, content: Content) -> PhysicalPlan:
    text = query_text(bounds, frame, k, content)
    endpoints = {SERVICE: connect(RecordedEndpoint({}))}
    options = QueryOptions(windows=WindowOptions(t0=frame.t0), endpoints=endpoints)
    physical = plan(check(text), text, "<experiment>", options).physical
    # Rows have no score: Oxigraph would compute it as a term for each row.
    ranking = _ranking(physical)
    query = replace(ranking.query, score=None)
    return replace(physical, operator=replace(ranking, query=query, projected=None))


def _ranking(physical: PhysicalPlan) -> AcquaTopConfig:
    assert isinstance(physical.operator, AcquaTopConfig), physical.why  # noqa: S101
    return physical.operator


class MentionStream(NamedTuple):
    """The stream of a workload, as columns: posts or counts, mentioned users, and times."""

    values: Integers
    users: Integers
    times: Integers
    content: Content = "posts"

    def triple(self, place: int, users: Sequence[NamedNode]) -> Triple:
        """Return the triple of a mention."""
        value, user = int(self.values[place]), users[self.users[place]]
        if self.content == "counts":
            return Triple(user, NamedNode(_COUNT), Literal(value))
        return Triple(NamedNode(f"{_POST}{value}"), NamedNode(MENTIONS_PREDICATE), user)


def make_workload(  # noqa: PLR0913, PLR0917 - the parts of a workload
    bounds: ScoreBounds,
    frame: TimeFrame,
    windows: int,
    mentions: MentionStream,
    users: Sequence[NamedNode],
    endpoint: RecordedEndpoint,
) -> Workload:
    """Return a workload, with the mentions matched as the query matches them."""
    matcher = Matcher(_ranking(_plan(bounds, frame, 1, mentions.content)).matching, Store())
    contents = []
    for pane, places in in_panes(frame, mentions.times):
        triples = [mentions.triple(place, users) for place in places.tolist()]
        contents.append((pane, matcher.match(triples, mentions.times[places], frame.t0)))
    return Workload(bounds, frame, windows, tuple(contents), tuple(users), endpoint, mentions)


def workload_of(dataset: Dataset, most: int | None = None, content: Content = "posts") -> Workload:
    """Return the workload of a dataset, with at most `most` windows; its time starts at 0."""
    edges = dataset.windows[:most]
    largest = max((int(dataset.mentioned(*window).max()) for window in edges), default=1)
    every = np.concatenate((dataset.initial, dataset.changes.values))
    bounds = ScoreBounds((1, max(largest, 1)), (float(every.min()), float(every.max())))
    times = dataset.mention_times
    values = np.arange(len(times)) if content == "posts" else dataset.counts()
    mentions = MentionStream(values, dataset.mention_users, times, content)
    users = [NamedNode(f"{USER}{name}") for name in dataset.names.tolist()]
    endpoint = replace(dataset, start=0).endpoint()
    return make_workload(bounds, dataset.frame, len(edges), mentions, users, endpoint)
