"""The lifecycle of live sources: they receive messages while the answers of a run are consumed."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from rsp_engine.io.sources.live.source import LiveSource

__all__ = ["live_sources"]

T = TypeVar("T")


def live_sources(
    sources: Sequence[LiveSource], checkpoint: str | Path | None, answers: Iterator[T]
) -> Generator[T]:
    """Yield the answers, with the sources started before and closed after.

    Spools are stored in the checkpoint, or in a temporary folder if there is none.
    """
    with ExitStack() as opened:
        if checkpoint is None and sources:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="rsp-")))
        else:
            folder = Path(checkpoint or ".")
        for number, source in enumerate(sources):
            opened.callback(source.close)
            name = hashlib.sha256(source.name.encode()).hexdigest()[:12]
            spool = folder / "spool" / f"{number}-{name}"
            source.begin(spool, is_kept=checkpoint is not None)
        yield from answers
