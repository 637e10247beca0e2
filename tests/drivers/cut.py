"""Runs that are cut: the state is saved as text, and another run resumes from it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rsp_engine.io.sinks.jsonl import JSONL
from tests.drivers.split_runs import in_splits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rsp_engine.engine import Engine

__all__ = ["ALWAYS", "cut", "texts"]

ALWAYS = range(1_000_000)


@contextmanager
def cut(cuts: Collection[int] = ALWAYS) -> Iterator[None]:
    """Patch engines so that they read one element at a time, and are cut before some of them."""
    with in_splits(are_split=False, cuts=cuts):
        yield


def texts(engine: Engine) -> list[str]:
    """Run an engine, and return its answers as they are written."""
    writer = JSONL.writer()
    return [str(writer(answer)) for answer in engine.run()]
