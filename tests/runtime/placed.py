"""Runs whose sources are read in places, in this process: what the Spark driver does with Spark."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa

from rsp_engine.runtime.local import Counts
from rsp_engine.runtime.placed import PlacedRun
from rsp_engine.runtime.spark.rows import from_rows, to_rows
from rsp_engine.runtime.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.runtime.pace import Pace
    from rsp_engine.runtime.reducing import Reduced
    from rsp_engine.runtime.sources import Source
    from rsp_engine.runtime.sources.cuts import Place

__all__ = ["InPlaces", "in_places"]


class InPlaces:
    """A driver that reads places of so many bytes, and a few of them in each batch.

    Before the batches in `cuts`, all that is known is written, and another run goes on from there.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[Source]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        pace: Pace | None = None,
        *,
        size: int = 1,
        count: int = 2,
        at_most: int = 3,
        cuts: Collection[int] = (),
        are_sent: bool = True,
    ) -> None:
        self.counts = Counts()
        self.places: list[tuple[int, Place, Reduced]] = []
        self._steps = steps
        self._given = sources, dead_letter, max_delay, pace
        self._run = PlacedRun(steps, *self._given)
        self._size, self._count, self._at_most = size, count, at_most
        self._cuts = cuts
        self._are_sent = are_sent

    def run(self) -> Iterator[Answer]:
        steps, run = self._steps, self._run
        planned: dict[int, Place] = {}
        batch = 0
        while not run.is_done:
            if batch in self._cuts:
                state = json.loads(json.dumps(run.state()))
                steps = [Step(step.plan) for step in steps]
                run = PlacedRun(steps, *self._given)
                run.restore(state, planned)
                assert run.state() == state, "nothing is lost"
            batch += 1
            places = list(run.plan(planned, self._size, self._count))
            given = [(number, place, run.reduce(number, place)) for number, place in places]
            self.places += given
            planned.update(places)
            yield from run.take(_sent(given) if self._are_sent else given, self._at_most)
        for field in fields(Counts):
            setattr(self.counts, field.name, getattr(run.counts, field.name))


def _sent(given: Sequence[tuple[int, Place, Reduced]]) -> list[tuple[int, Place, Reduced]]:
    """Return what arrives of places if they are sent as executors send them."""
    rows = [to_rows(seq, *each) for seq, each in enumerate(given)]
    return from_rows(pa.Table.from_batches(rows)) if rows else []


@contextmanager
def in_places(
    size: int = 1, count: int = 2, cuts: Collection[int] = (), *, are_sent: bool = True
) -> Iterator[None]:
    """Let engines read their sources in places; what is read is sent as rows, or given as it is."""
    made = partial(InPlaces, size=size, count=count, cuts=cuts, are_sent=are_sent)
    with patch("rsp_engine.engine.LocalDriver", made):
        yield
