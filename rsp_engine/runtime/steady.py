"""The local driver for what has no end, or must not be lost: place by place, in this process.

The same places, states and checkpoints as on Spark. A state is written at most every half second,
when every answer that came of it has left; a disk that is full is told, and tried again.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.errors import DriverError
from rsp_engine.runtime.placed import PlacedRun
from rsp_engine.runtime.sources.cuts import Place
from rsp_engine.runtime.spark.checkpoint import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.replica.recording import Recording
    from rsp_engine.runtime.local import Counts
    from rsp_engine.runtime.outputs import Output
    from rsp_engine.runtime.pace import Pace
    from rsp_engine.runtime.sources import Source
    from rsp_engine.runtime.step import Step

__all__ = ["Kept", "SteadyDriver"]

_LOG = logging.getLogger("rsp")
_COMMIT_S = 0.5
_PLACES = 4
_READ_HERE = 20_000


class Kept(NamedTuple):
    """What is kept, and where: the folder, and what has to be there again to go on."""

    folder: str | None = None
    identity: Mapping[str, Any] = {}
    recordings: Sequence[Recording] = ()
    """What services are asked through."""
    outputs: Sequence[Output] = ()
    """Where answers are written to by whoever takes them."""


class SteadyDriver:
    """Runs queries over sources until these end, or somebody stops it."""

    def __init__(  # noqa: PLR0913 - what the local driver takes, and what is kept
        self,
        steps: Sequence[Step],
        sources: Mapping[str, Sequence[Source]],
        dead_letter: Callable[[DeadLetter], None],
        max_delay: int = 0,
        pace: Pace | None = None,
        *,
        place_bytes: int = 1 << 20,
        kept: Kept | None = None,
    ) -> None:
        self._run = PlacedRun(steps, sources, dead_letter, max_delay, pace)
        self._place_bytes = place_bytes
        self._kept = kept or Kept()
        self._planned: dict[int, Place] = {}
        self._batch = -1
        self._committed = -float("inf")
        self._needed: dict[int, int] = {}
        self._calls: list[list[Any]] = [[] for _ in self._kept.recordings]
        self._is_stopping = False
        self._is_failing = False
        self._is_dirty = False
        """Whether something was taken that no state knows of."""
        folder = self._kept.folder
        identity = {**self._kept.identity, "runner": "local"}
        self._checkpoint = None if folder is None else Checkpoint(folder, identity)

    @property
    def counts(self) -> Counts:
        """What passed through the run so far."""
        return self._run.counts

    @property
    def is_stopping(self) -> bool:
        """Whether somebody has ended the run before its end."""
        return self._is_stopping

    def watermarks(self) -> dict[str, float]:
        """Return how far each query has come; another thread may ask."""
        return self._run.watermarks()

    def read_to(self) -> Mapping[int, Place]:
        """Return the last place of each source that was read in places."""
        return self._planned.copy()

    def stop(self) -> None:
        """End the run after what is in hand."""
        self._is_stopping = True

    def run(self) -> Iterator[Answer]:
        """Yield the answers of all queries, each query's in order."""
        self._restore()
        while not (self._run.is_done or self._is_stopping):
            yield from self._answers()
            self._commit()
        self._commit(is_last=True)

    def _answers(self) -> Iterator[Answer]:
        places = self._run.plan_when_there_is_more(
            self._planned,
            self._place_bytes,
            _PLACES,
            lambda: self._is_stopping or (self._is_dirty and self._is_time_to_commit()),
        )
        self._is_dirty = self._is_dirty or bool(places)
        given = [(number, place, self._run.reduce(number, place)) for number, place in places]
        for number, place, _ in given:
            self._planned[number] = place
        for answer in self._run.take(given, _READ_HERE):
            self._note()
            yield answer

    def _note(self) -> None:
        """Write down what services answered, before anything that comes of it leaves."""
        if self._checkpoint is None:
            return
        new = [recording.take() for recording in self._kept.recordings]
        if any(new):
            for known, more in zip(self._calls, new, strict=True):
                known.extend(more)
            self._checkpoint.write_fetched(self._batch + 1, self._calls)

    def _restore(self) -> None:
        """Go on from the last state that was written."""
        saved = None if self._checkpoint is None else self._checkpoint.last()
        self._batch = -1 if saved is None else saved[0]
        self._replay()
        if saved is None:
            for output in self._kept.outputs:
                output.go_back(None)
            return
        _, state = saved
        self._run.restore(state["run"])
        self._planned = {int(number): Place(*p) for number, p in state["planned"].items()}
        for output, position in zip(self._kept.outputs, state["outputs"], strict=True):
            output.go_back(position)

    def _replay(self) -> None:
        """Let services answer as they did before the run broke off."""
        calls = [] if self._checkpoint is None else self._checkpoint.fetched(self._batch + 1)
        for recording, said in zip(self._kept.recordings, calls, strict=False):
            recording.replay(said, is_strict=False)

    def _is_time_to_commit(self) -> bool:
        is_kept = self._checkpoint is not None
        return is_kept and time.monotonic() - self._committed >= _COMMIT_S

    def _commit(self, *, is_last: bool = False) -> None:
        """Write all that is known, if it is time to, and let sources forget what is not needed."""
        if self._checkpoint is None:
            self._run.release(self._run.needed(self._planned))
            return
        if not is_last and not self._is_time_to_commit():
            return
        now = time.monotonic()
        self._note()
        planned = {str(n): [p.start, p.end, p.line] for n, p in self._planned.items()}
        outputs = [output.position() for output in self._kept.outputs]
        state = {"run": self._run.state(), "planned": planned, "outputs": outputs}
        try:
            self._checkpoint.write_state(self._batch + 1, state)
        except DriverError as error:
            if is_last:
                raise
            if not self._is_failing:
                _LOG.warning("%s; the run goes on, and tries again", error.message)
            self._is_failing, self._committed = True, now
            return
        self._is_failing, self._committed, self._batch = False, now, self._batch + 1
        self._calls, self._is_dirty = [[] for _ in self._kept.recordings], False
        # What the state before the last one needs is kept, like that state itself.
        self._run.release(self._needed)
        self._needed = self._run.needed(self._planned)
