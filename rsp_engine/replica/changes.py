"""The change feed: a stream in which the remote side pushes its changes.

(AcquaTop, section 5: the first solution, for users who control the remote side. A pushed change
enters Topk+N as a changed object at the next evaluation, and costs no budget.)

An element of the feed holds triples that the remote dataset has from the time of the element on.
The group of the SERVICE clause is evaluated over the triples of this element alone. Its solutions
replace all solutions of the keys that they bind. So an element must hold every triple that the
group needs. A feed cannot push that a value is gone: only a fetch finds that.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyoxigraph as ox

from rsp_engine.model.terms.ntriples import read_triples
from rsp_engine.replica.endpoints.endpoint import FetchResult
from rsp_engine.replica.endpoints.in_process import EVALUATION, ask, refuse_unreadable
from rsp_engine.replica.sparql_client.nested import refuse_nested
from rsp_engine.replica.sparql_client.request_text import whole_text
from rsp_engine.replica.sparql_client.results import answers_of_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

__all__ = ["NOTHING_TO_ASK", "ChangeFeed", "PushedChange"]

NOTHING_TO_ASK = "nothing to ask"
"""The fault of a snapshot: a feed has no endpoint behind it."""


class PushedChange(NamedTuple):
    """The answers in an element of the feed, and the time from which they hold."""

    time: int
    fetched: FetchResult


class ChangeFeed:
    """Buffers pushed changes until they are due. As an endpoint, it has no answers.

    Pass each due change to `Replica.apply` with its own time.
    """

    def __init__(self, pattern: RemotePattern) -> None:
        refuse_nested(pattern)
        refuse_unreadable(pattern)
        self._pattern = pattern
        self._text = whole_text(pattern)
        self._waiting: list[tuple[int, tuple[str, ...], PushedChange]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, time: int, triples: Iterable[ox.Triple]) -> PushedChange:
        """Add an element of the feed; return its change."""
        # In term order, so that the arrival order of triples, or of elements with equal times, does
        # not matter.
        ordered = sorted(set(triples), key=str)
        graph = ox.Dataset(ox.Quad(t.subject, t.predicate, t.object) for t in ordered)
        change = PushedChange(time, self._fetched(graph))
        self._waiting.append((time, tuple(map(str, ordered)), change))
        return change

    def _fetched(self, graph: ox.Dataset) -> FetchResult:
        rows = ask(graph, self._text)
        if rows is None:
            return FetchResult(faults={EVALUATION: 1})
        if not rows:
            return FetchResult()
        answers, faults = answers_of_whole(self._pattern, rows)
        return FetchResult(answers, 0, faults)

    def due(self, now: int) -> list[PushedChange]:
        """Remove and return the changes up to `now`, in time order."""
        waiting = sorted(self._waiting, key=itemgetter(0, 1))
        self._waiting = [entry for entry in waiting if entry[0] > now]
        return [change for time, _, change in waiting if time <= now]

    def state(self) -> list[list[Any]]:
        """Return the buffered elements as plain data: times and triples."""
        return [
            [time, "\n".join(texts)]
            for time, texts, _ in sorted(self._waiting, key=itemgetter(0, 1))
        ]

    def restore(self, state: Iterable[Sequence[Any]]) -> None:
        """Restore the buffered elements of a saved state."""
        self._waiting = []
        for time, text in state:
            self.push(time, read_triples(text))

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        """Return no answers: keys change only by what is pushed."""
        return FetchResult()

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        """Return no answers, with a fault, since this is not the whole dataset."""
        return FetchResult(faults={NOTHING_TO_ASK: 1})

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
