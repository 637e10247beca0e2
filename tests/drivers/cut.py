"""Runs that are cut: the state is saved as text, and another driver resumes from it."""

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


def state_text(driver: LocalDriver, steps: Sequence[Step]) -> str:
    """Return the state of a run as text."""
    return json.dumps([driver.state(), *(step.state() for step in steps)])


class CutDriver(LocalDriver):
    """A driver that resumes with new steps before some of the items."""

    def __init__(
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[ElementSource]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        replay_clock: ReplayClock | None = None,
        *,
        cuts: Collection[int] = ALWAYS,
    ) -> None:
        super().__init__(steps, sources, dead_letter, max_delay, replay_clock)
        self._arguments = sources, dead_letter, max_delay
        self._cuts = cuts

    def run(self) -> Iterator[Answer]:
        sources, dead_letter, max_delay = self._arguments
        steps = self._by_number
        driver = LocalDriver(steps, sources, dead_letter, max_delay)
        for number, item in enumerate(merge_sources(sources, in_batches=not self._has_feeds)):
            if number in self._cuts:
                text = state_text(driver, steps)
                state, *states = json.loads(text)
                steps = [Step(step.plan) for step in steps]
                driver = LocalDriver(steps, sources, dead_letter, max_delay)
                driver.restore(state)
                for step, step_state in zip(steps, states, strict=True):
                    step.restore(step_state)
                assert state_text(driver, steps) == text, "nothing is lost"
            yield from driver.take([item])
        for field in fields(Counts):
            setattr(self.counts, field.name, getattr(driver.counts, field.name))


@contextmanager
def cut(cuts: Collection[int] = ALWAYS) -> Iterator[None]:
    """Patch engines so that their runs are cut before these items."""

    with patch("rsp_engine.engine.LocalDriver", partial(CutDriver, cuts=cuts)):
        yield


def texts(engine: Engine) -> list[str]:
    """Run an engine, and return its answers as they are written."""
    writer = JSONL.writer()
    return [str(writer(answer)) for answer in engine.run()]
