"""A source that kills the processes that read its splits, a few times."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.splits import Split, SplitPart, Splittable

__all__ = ["Dying"]


class Dying:
    """Another source, which kills the first `times` processes that read a split after the first."""

    blank_node_scope = "stream"
    can_be_cut = True

    def __init__(self, source: Splittable, folder: Path, times: int) -> None:
        self.name = source.name  # type: ignore[attr-defined]
        self._source = source
        self._folder = str(folder)
        self._times = times
        self._home = os.getpid()

    def __iter__(self) -> Iterator[object]:
        return iter(self._source)  # type: ignore[call-overload,no-any-return]

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        return self._source.cut(size, since)

    def part(self, split: Split) -> SplitPart:
        deaths = len(list(Path(self._folder).glob("death-*")))
        if split.start and deaths < self._times and os.getpid() != self._home:
            (Path(self._folder) / f"death-{deaths}-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self._source.part(split)
