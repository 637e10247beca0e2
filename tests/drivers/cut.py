"""Runs that are cut: everything known is written as text, and others go on from there."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

from rsp_engine.drivers.local import LocalDriver
from rsp_engine.drivers.merge_sources import merge_sources
from rsp_engine.evaluators.step import Step
from rsp_engine.io.sinks.jsonl import JSONL
from rsp_engine.monitor.run_monitor import Counts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rsp_engine.drivers.replay_clock import ReplayClock
    from rsp_engine.engine import Engine
    from rsp_engine.io.sources import ElementSource
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter

__all__ = ["ALWAYS", "cut", "texts"]

ALWAYS = range(1_000_000)


def written(driver: LocalDriver, steps: Sequence[Step]) -> str:
    """Write all that a run knows."""
    return json.dumps([driver.state(), *(step.state() for step in steps)])


class CutDriver(LocalDriver):
    """Goes on with a new driver and new steps before some of the items."""

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[ElementSource]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        pace: ReplayClock | None = None,
        *,
        cuts: Collection[int] = ALWAYS,
    ) -> None:
        super().__init__(steps, sources, dead_letter, max_delay, pace)
        self._given = sources, dead_letter, max_delay
        self._asked = steps
        self._cuts = cuts

    def run(self) -> Iterator[Answer]:
        sources, dead_letter, max_delay = self._given
        steps, driver = self._asked, LocalDriver(self._asked, sources, dead_letter, max_delay)
        for number, item in enumerate(merge_sources(sources, in_batches=not self._has_feeds)):
            if number in self._cuts:
                text = written(driver, steps)
                known, *states = json.loads(text)
                steps = [Step(step.plan) for step in steps]
                driver = LocalDriver(steps, sources, dead_letter, max_delay)
                driver.restore(known)
                for step, state in zip(steps, states, strict=True):
                    step.restore(state)
                assert written(driver, steps) == text, "nothing is lost"
            yield from driver.take([item])
        for field in fields(Counts):
            setattr(self.counts, field.name, getattr(driver.counts, field.name))


@contextmanager
def cut(cuts: Collection[int] = ALWAYS) -> Iterator[None]:
    """Let engines run so that they are cut before these items."""

    with patch("rsp_engine.engine.LocalDriver", partial(CutDriver, cuts=cuts)):
        yield


def texts(engine: Engine) -> list[str]:
    """Run an engine, and return its answers as they are written."""
    writer = JSONL.writer()
    return [str(writer(answer)) for answer in engine.run()]
