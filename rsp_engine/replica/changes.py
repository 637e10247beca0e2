"""A change feed: the remote side tells what is new, and nobody has to ask.

(AcquaTop, section 5: the first solution, for those who control the remote side. What is pushed
enters Topk+N as changed objects at the next evaluation, and costs no budget.)

An element of the feed holds triples as the remote dataset has them from its time on. The group of
the SERVICE clause is evaluated over the triples of the element alone: what it gives are the new
solutions of the keys that it gives, all of them. So an element must hold everything that the group
needs; a value that is gone cannot be told, and is found by asking.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyoxigraph as ox

from rsp_engine.model.terms.ntriples import read_triples
from rsp_engine.replica.endpoints.endpoint import Fetched
from rsp_engine.replica.endpoints.in_process import EVALUATION, ask, refuse_unreadable
from rsp_engine.replica.sparql_client.nested import refuse_nested
from rsp_engine.replica.sparql_client.request_text import whole_text
from rsp_engine.replica.sparql_client.rows import answers_of_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern

__all__ = ["NOTHING_TO_ASK", "ChangeFeed", "PushedChange"]

NOTHING_TO_ASK = "nothing to ask"
"""The cause where a snapshot is asked of a feed."""


class PushedChange(NamedTuple):
    """What an element of the feed says, and since when it holds."""

    time: int
    fetched: Fetched


class ChangeFeed:
    """Holds what was pushed until it is due. There is nothing behind it that could be asked.

    Each change that is due goes to `Replica.apply` with its own time.
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
        """Take in an element; return what it says."""
        # In term order, whatever the order in which they came; so are elements of one time.
        held = sorted(set(triples), key=str)
        graph = ox.Dataset(ox.Quad(t.subject, t.predicate, t.object) for t in held)
        change = PushedChange(time, self._fetched(graph))
        self._waiting.append((time, tuple(map(str, held)), change))
        return change

    def _fetched(self, graph: ox.Dataset) -> Fetched:
        rows = ask(graph, self._text)
        if rows is None:
            return Fetched(faults={EVALUATION: 1})
        if not rows:
            return Fetched()
        answers, faults = answers_of_whole(self._pattern, rows)
        return Fetched(answers, 0, faults)

    def due(self, now: int) -> list[PushedChange]:
        """Give out the changes up to an instant, in the order of their times."""
        waiting = sorted(self._waiting, key=itemgetter(0, 1))
        self._waiting = [entry for entry in waiting if entry[0] > now]
        return [change for time, _, change in waiting if time <= now]

    def state(self) -> list[list[Any]]:
        """Return what waits as plain data: the times and the triples of elements."""
        return [
            [time, "\n".join(texts)]
            for time, texts, _ in sorted(self._waiting, key=itemgetter(0, 1))
        ]

    def restore(self, state: Iterable[Sequence[Any]]) -> None:
        """Take up what waits."""
        self._waiting = []
        for time, text in state:
            self.push(time, read_triples(text))

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> Fetched:
        """Answer nothing: what is not pushed stays as it is."""
        return Fetched()

    def snapshot(self, limits: Limits, now: int) -> Fetched:
        """Answer nothing, and say that this is not the whole dataset."""
        return Fetched(faults={NOTHING_TO_ASK: 1})

    def close(self) -> None:
        """Hold nothing that must be given back."""
