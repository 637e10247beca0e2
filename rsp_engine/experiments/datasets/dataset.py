"""A dataset of AcquaTop: the mentions of users over time, and the dfc of every user over time.

dfc is the difference between a user's number of followers and that of a minute before. The mentions
are the stream, and dfc is the remote value. (AcquaTop: Zahmatkesh, Della Valle: Continuous top-k
approximated join of streaming and evolving distributed data, section 6.1.)

Users are numbered from 0, and all times are milliseconds since the start of the dataset. Only the
exports, as text or as an endpoint, have the IRIs of the users and the time on the clock:

    mentions    <http://example.org/post/0> schema:mentions <http://example.org/user/7>
    dfc         <http://example.org/user/7> <http://example.org/dfc> 12.500000007

The windows of the paper are 100 s long and slide by 60 s. Here they are `(open, close]`, and the
first one opens at the start.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pyoxigraph import Literal, NamedNode

from rsp_engine.model.windows import TimeFrame
from rsp_engine.replica.endpoints.recorded import RecordedEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.replica.pattern import Key, RemoteSolution

__all__ = [
    "DFC",
    "EVALUATIONS",
    "MENTIONS_PREDICATE",
    "RANGE",
    "STEP",
    "USER",
    "Dataset",
    "EventTable",
]

RANGE = 100_000
STEP = 60_000
PAPER_FRAME = TimeFrame(RANGE, STEP)
EVALUATIONS = 150
"""The number of windows that the paper evaluates; its dataset is long enough for a few more."""

MENTIONS_PREDICATE = "https://schema.org/mentions"
USER = "http://example.org/user/"
DFC = "http://example.org/dfc"
_POST = "http://example.org/post/"
_GRAPH = "http://example.org/at/"
_DECIMAL = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")


class EventTable(NamedTuple):
    """Changes of dfc in the order of time: a user has a value from its time on."""

    times: Integers
    users: Integers
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Mentions and values of dfc, in read-only arrays.

    `start` is the time on the clock at which it begins. `names` are the numbers in the IRIs of the
    users. `mention_times` are in order, and `mention_users` belong to them. `initial` is the dfc of
    every user at the start, with which the replica starts. `invocations` are the times at which the
    remote side was asked, `reported_users` the number of users that each invocation reported.
    `frame` has the range and the step of the windows, and `most_windows` bounds their number.
    Values are exported as decimals if all of them are whole numbers of billionths, and below 10,000
    (`is_whole`), else as doubles: the engine ranks by float64 only what float64 can hold.
    """

    name: str
    start: int
    duration: int
    names: Integers
    mention_times: Integers
    mention_users: Integers
    initial: Floats
    changes: EventTable
    invocations: Integers
    reported_users: Integers
    frame: TimeFrame = PAPER_FRAME
    most_windows: int | None = EVALUATIONS
    is_whole: bool = True

    def __post_init__(self) -> None:
        for array in (
            *(self.names, self.mention_times, self.mention_users, self.initial),
            *(*self.changes, self.invocations, self.reported_users),
        ):
            array.flags.writeable = False

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """The open and close times of the windows, at most `most_windows`."""
        range_, step = self.frame.range, self.frame.step
        count = max((self.duration - range_) // step + 1, 0)
        count = count if self.most_windows is None else min(count, self.most_windows)
        return tuple((i * step, i * step + range_) for i in range(count))

    def mentioned(self, opened: int, closed: int) -> Integers:
        """Return the number of mentions of each user in `(opened, closed]`."""
        first, last = np.searchsorted(self.mention_times, (opened, closed), side="right")
        counts = np.bincount(self.mention_users[first:last], minlength=len(self.names))
        return counts.astype(np.int64)

    def counts(self) -> Integers:
        """Return for each mention how often its user was mentioned in the range up to it."""
        counts = np.empty(len(self.mention_times), dtype=np.int64)
        for user in range(len(self.names)):
            own = np.flatnonzero(self.mention_users == user)
            times = self.mention_times[own]
            expired = np.searchsorted(times, times - self.frame.range, side="right")
            counts[own] = np.searchsorted(times, times, side="right") - expired
        return counts

    def last_mention(self, closed: int) -> Integers:
        """Return the position of each user's last mention up to a time, -1 if there is none."""
        count = np.searchsorted(self.mention_times, closed, side="right")
        positions = np.full(len(self.names), -1)
        positions[self.mention_users[:count]] = np.arange(count)  # the last assignment wins
        return positions

    def mentioned_parts(self, opened: int, closed: int) -> Integers:
        """Return the number of parts of a window in which each user is mentioned: 0, 1 or 2.

        The parts are the slide and the rest of the window. The program of the authors takes this
        for the number of mentions, since it counts a user once per part.
        """
        parts = (opened, opened + self.frame.step), (opened + self.frame.step, closed)
        return sum((np.minimum(self.mentioned(*p), 1) for p in parts), np.zeros_like(self.names))

    def once_a_slide(self) -> Dataset:
        """Return a copy that keeps only the first mention of a user in each slide.

        Its `mentioned` equals `mentioned_parts` of this dataset.
        """
        slides = (self.mention_times - 1) // self.frame.step  # slides are open on the left
        _, first = np.unique(slides * len(self.names) + self.mention_users, return_index=True)
        first.sort()
        times, users = self.mention_times[first], self.mention_users[first]
        return replace(self, mention_times=times, mention_users=users)

    def dfc_at(self, time: int) -> Floats:
        """Return the dfc of each user at a time."""
        values = self.initial.copy()
        count = np.searchsorted(self.changes.times, time, side="right")
        # Of several values of one user, the last assignment wins.
        values[self.changes.users[:count]] = self.changes.values[:count]
        return values

    def history(self, user: int) -> tuple[Integers, Floats]:
        """Return the values of a user's dfc with the time from which each is valid."""
        own = self.changes.users == user
        times = np.concatenate(([0], self.changes.times[own]))
        return times, np.concatenate((self.initial[[user]], self.changes.values[own]))

    def nquads(self) -> Iterator[str]:
        """Yield the stream of mentions as lines of N-Quads; the graph IRI has the time."""
        for time, triple in self._triples():
            yield f"{triple} <{_GRAPH}{time}> .\n"

    def jsonl(self) -> Iterator[str]:
        """Yield the stream of mentions as lines of JSON, one element each."""
        for time, triple in self._triples():
            yield json.dumps({"timestamp": time, "graph": f"{triple} ."}) + "\n"

    def elements(self) -> list[tuple[int, str]]:
        """Return the stream of mentions as pairs of a time and a text in Turtle."""
        return [(time, f"{triple} .") for time, triple in self._triples()]

    def _triples(self) -> Iterator[tuple[int, str]]:
        times = (self.mention_times + self.start).tolist()
        users = self.names[self.mention_users].tolist()
        for post, (time, user) in enumerate(zip(times, users, strict=True)):
            yield time, f"<{_POST}{post}> <{MENTIONS_PREDICATE}> <{USER}{user}>"

    def history_csv(self) -> Iterator[str]:
        """Yield the values of dfc as lines of CSV that a recorded endpoint reads."""
        yield "time,user,dfc\n"
        for time, user, dfc in self._values():
            yield f"{time},<{USER}{user}>,{dfc.value if self.is_whole else dfc}\n"

    def endpoint(self) -> RecordedEndpoint:
        """Return an endpoint that answers `?user :dfc ?dfc` as of any time."""
        histories = defaultdict[int, list[tuple[int, tuple["RemoteSolution", ...]]]](list)
        for time, user, dfc in self._values():
            histories[user].append((time, _solutions(dfc)))
        return RecordedEndpoint({_key(user): values for user, values in histories.items()})

    def replica(self) -> dict[Key, tuple[RemoteSolution, ...]]:
        """Return the initial solutions of the replica."""
        pairs = zip(self.names.tolist(), self.initial.tolist(), strict=True)
        return {_key(user): _solutions(self._term(dfc)) for user, dfc in pairs}

    def _term(self, dfc: float) -> Literal:
        return _decimal(dfc) if self.is_whole else Literal(dfc)

    def _values(self) -> Iterator[tuple[int, int, Literal]]:
        """Yield time, name and dfc of every value; dfc with all its digits."""
        for user, dfc in zip(self.names.tolist(), self.initial.tolist(), strict=True):
            yield self.start, user, self._term(dfc)
        times, users, values = self.changes
        names = self.names[users].tolist()
        for time, user, dfc in zip(times.tolist(), names, values.tolist(), strict=True):
            yield self.start + time, user, self._term(dfc)


def _decimal(dfc: float) -> Literal:
    """Return a dfc, a whole number of billionths, without loss."""
    return Literal(f"{dfc:.9f}", datatype=_DECIMAL)


def _key(user: int) -> Key:
    return (NamedNode(f"{USER}{user}"),)


def _solutions(dfc: Literal) -> tuple[RemoteSolution, ...]:
    return ({"dfc": dfc},)
