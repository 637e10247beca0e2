"""A dataset of AcquaTop: who is mentioned when, and the dfc of every user over time.

dfc is the difference between a user's number of followers and that of a minute before. It is what
the remote side tells; the mentions are the stream. (AcquaTop: Zahmatkesh, Della Valle: Continuous
top-k approximated join of streaming and evolving distributed data, section 6.1.)

Users are numbered from 0, and all times are milliseconds since the start of the dataset. Only what
leaves it, as text or as an endpoint, has the names of the users and the time on the clock:

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
EVALUATIONS = 150
"""So many windows the paper evaluates, though there is time for a few more."""

MENTIONS_PREDICATE = "https://schema.org/mentions"
USER = "http://example.org/user/"
DFC = "http://example.org/dfc"
_POST = "http://example.org/post/"
_GRAPH = "http://example.org/at/"
_DECIMAL = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")


class EventTable(NamedTuple):
    """New values of dfc in the order of time: the user of each has this value from then on."""

    times: Integers
    users: Integers
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Mentions and values of dfc. The arrays cannot be written to.

    `start` is the time on the clock at which it begins. `names` are the numbers that stand in the
    IRIs of the users. `mention_times` are in order, and `mention_users` belong to them. `initial`
    is the dfc of every user at the start: what the replica knows before anything is fetched.
    `invocations` are the times at which the remote side was asked, `told` how many users each told.
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
    told: Integers

    def __post_init__(self) -> None:
        for array in (
            *(self.names, self.mention_times, self.mention_users, self.initial),
            *(*self.changes, self.invocations, self.told),
        ):
            array.flags.writeable = False

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """When the windows open and close: those that the paper evaluates, if there is time."""
        count = min(max((self.duration - RANGE) // STEP + 1, 0), EVALUATIONS)
        return tuple((i * STEP, i * STEP + RANGE) for i in range(count))

    def mentioned(self, opened: int, closed: int) -> Integers:
        """Return how often each user is mentioned in `(opened, closed]`."""
        first, last = np.searchsorted(self.mention_times, (opened, closed), side="right")
        found = np.bincount(self.mention_users[first:last], minlength=len(self.names))
        return found.astype(np.int64)

    def last_mention(self, closed: int) -> Integers:
        """Return the place of the last mention of each user until a time, -1 if there is none."""
        count = np.searchsorted(self.mention_times, closed, side="right")
        found = np.full(len(self.names), -1)
        found[self.mention_users[:count]] = np.arange(count)  # what is written last stays
        return found

    def mentioned_parts(self, opened: int, closed: int) -> Integers:
        """Return in how many parts of a window each user is mentioned: 0, 1 or 2.

        The parts are the slide and what remains of the window. The program of the authors takes
        this for the number of mentions, as it counts those of a user in a part only once.
        """
        parts = (opened, opened + STEP), (opened + STEP, closed)
        return sum((np.minimum(self.mentioned(*p), 1) for p in parts), np.zeros_like(self.names))

    def once_a_slide(self) -> Dataset:
        """Return the same with one mention of a user in a slide, the first.

        The number of mentions in a window is then that of `mentioned_parts`.
        """
        slides = (self.mention_times - 1) // STEP  # a slide is open on the left
        _, first = np.unique(slides * len(self.names) + self.mention_users, return_index=True)
        first.sort()
        times, users = self.mention_times[first], self.mention_users[first]
        return replace(self, mention_times=times, mention_users=users)

    def dfc_at(self, time: int) -> Floats:
        """Return the dfc of each user at a time."""
        found = self.initial.copy()
        count = np.searchsorted(self.changes.times, time, side="right")
        # Of several values of one user the last is written last, and stays.
        found[self.changes.users[:count]] = self.changes.values[:count]
        return found

    def history(self, user: int) -> tuple[Integers, Floats]:
        """Return since when a user has had which dfc, from the start on."""
        own = self.changes.users == user
        times = np.concatenate(([0], self.changes.times[own]))
        return times, np.concatenate((self.initial[[user]], self.changes.values[own]))

    def nquads(self) -> Iterator[str]:
        """Yield the stream of mentions as lines of N-Quads; the graph of each says its time."""
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
        """Yield the values of dfc as the lines of a table that `recorded` reads."""
        yield "time,user,dfc\n"
        for time, user, dfc in self._values():
            yield f"{time},<{USER}{user}>,{dfc}\n"

    def endpoint(self) -> RecordedEndpoint:
        """Return an endpoint that knows the dfc of each user at any time, as `?user :dfc ?dfc`."""
        found = defaultdict[int, list[tuple[int, tuple["RemoteSolution", ...]]]](list)
        for time, user, dfc in self._values():
            found[user].append((time, _solutions(dfc)))
        return RecordedEndpoint({_key(user): values for user, values in found.items()})

    def replica(self) -> dict[Key, tuple[RemoteSolution, ...]]:
        """Return the solutions that the replica starts with."""
        pairs = zip(self.names.tolist(), self.initial.tolist(), strict=True)
        return {_key(user): _solutions(_decimal(dfc)) for user, dfc in pairs}

    def _values(self) -> Iterator[tuple[int, int, str]]:
        """Yield time, name and dfc of every value, as text that has all its digits."""
        for user, dfc in zip(self.names.tolist(), self.initial.tolist(), strict=True):
            yield self.start, user, _decimal(dfc)
        times, users, values = self.changes
        names = self.names[users].tolist()
        for time, user, dfc in zip(times.tolist(), names, values.tolist(), strict=True):
            yield self.start + time, user, _decimal(dfc)


def _decimal(dfc: float) -> str:
    """Write a dfc, which is a whole number of billionths, so that it is read as it was."""
    return f"{dfc:.9f}"


def _key(user: int) -> Key:
    return (NamedNode(f"{USER}{user}"),)


def _solutions(dfc: str) -> tuple[RemoteSolution, ...]:
    return ({"dfc": Literal(dfc, datatype=_DECIMAL)},)
