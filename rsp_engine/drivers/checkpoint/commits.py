"""Commits: what a driver that reads place by place writes down, so that it can go on after a crash.

Between two commits lies a batch. What services answer in it is noted before anything that comes of
it leaves, and the places of a batch that must be the same again before it is run; when everything
has left, the state, the places, the positions of the outputs and the answers of services are
committed together. Without a folder nothing is written, and sources forget what was read.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.drivers.checkpoint.rewindable import rewind_outputs
from rsp_engine.drivers.checkpoint.state_log import LoggedState
from rsp_engine.drivers.checkpoint.store import Checkpoint
from rsp_engine.io.sources.splits import Split
from rsp_engine.model.state import damage_guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rsp_engine.drivers.checkpoint.rewindable import RewindableOutput
    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.model.state import StateData
    from rsp_engine.replica.endpoints.recording import RecordedCall, RecordingEndpoint

__all__ = ["BatchPlan", "CheckpointSpec", "Commits"]


class CheckpointSpec(NamedTuple):
    """What is kept, and where: the folder, and what has to be there again to go on."""

    folder: str | None = None
    identity: Mapping[str, Any] = {}
    recordings: Sequence[RecordingEndpoint] = ()
    """What services are asked through."""
    outputs: Sequence[RewindableOutput] = ()
    """Where answers are written to by whoever takes them."""


class BatchPlan(NamedTuple):
    """What a batch reads: places, each with the number of its source, and sources without more."""

    places: Sequence[tuple[int, Split]]
    ended: Sequence[int] = ()


class Commits:
    """The commits of a run, and the places that it has read."""

    def __init__(self, run: SplitRun, kept: CheckpointSpec) -> None:
        self._run = run
        self._kept = kept
        self._checkpoint = (
            None if kept.folder is None else Checkpoint(kept.folder, dict(kept.identity))
        )
        self.last = -1
        """The number of the last batch that was committed, -1 before the first."""
        self.planned: dict[int, Split] = {}
        """The last place of each source that was read in places."""
        self.broken: BatchPlan | None = None
        """What the batch reads that broke off, if it must be the same again."""
        self._asked = [0] * len(kept.recordings)  # in this batch, of each service
        self._unwritten: list[list[Any]] = []

    @property
    def folder(self) -> Path | None:
        """Where commits are written, if anywhere."""
        return None if self._checkpoint is None else self._checkpoint.folder

    def restore(self, *, is_strict: bool) -> None:
        """Go on from the last commit; services answer as they did before the batch broke off.

        `is_strict` says that the batch is the same again, and so are its questions. Otherwise it
        may end elsewhere, and from the first other question on services are asked anew.
        """
        with _uncollected():
            self._restore(is_strict=is_strict)

    def _restore(self, *, is_strict: bool) -> None:
        saved = LoggedState() if self._checkpoint is None else self._checkpoint.last()
        self.last, state = saved.batch, saved.state
        with damage_guard("the run"):
            if state is not None:
                self.planned = {int(number): Split(*p) for number, p in state["planned"].items()}
                self._run.restore(state["run"], self.planned)
                self._run.release(self._run.needed(self.planned))
            plans = [note["plan"] for note in saved.notes if "plan" in note]
            self.broken = _read_plan(plans[-1]) if plans and is_strict else None
            calls = self._noted_calls(saved.notes)
        for recording, said in zip(self._kept.recordings, calls, strict=True):
            recording.replay(said, is_strict=is_strict)
        rewind_outputs(self._kept.outputs, None if state is None else state["outputs"])

    def _noted_calls(self, notes: Iterable[Any]) -> list[list[RecordedCall]]:
        """Return the calls of each service in the batch that broke off."""
        calls: list[list[RecordedCall]] = [[] for _ in self._kept.recordings]
        for number, start, more in (each for note in notes for each in note.get("calls", ())):
            calls[number][start:] = more  # what came after another question is gone
        return calls

    def plan(self, plan: BatchPlan) -> None:
        """Write down what the next batch reads, before it is run."""
        if self._checkpoint is not None:
            places = [[number, *_written_place(place)] for number, place in plan.places]
            self._checkpoint.note({"plan": [places, [*plan.ended]]})

    def note(self) -> None:
        """Write down what services answered, before anything that comes of it leaves."""
        if self._checkpoint is None:
            return
        for number, recording in enumerate(self._kept.recordings):
            replayed, new = recording.take()
            self._asked[number] += replayed
            if new:
                self._unwritten.append([number, self._asked[number], new])
                self._asked[number] += len(new)
        if self._unwritten:
            self._checkpoint.note({"calls": self._unwritten})
            self._unwritten = []

    def commit(self) -> None:
        """Write all that is known, and let sources forget what is not needed any more.

        If it cannot be written, that is raised, and the batch goes on: commit it later.
        """
        needed = self._run.needed(self.planned)
        if self._checkpoint is not None:
            self.note()
            # What is not replayed yet belongs to the next batch.
            waiting = [[n, 0, r.waiting()] for n, r in enumerate(self._kept.recordings)]
            left = {"calls": waiting} if any(calls for *_, calls in waiting) else None
            self._checkpoint.write_state(self.last + 1, self._state(), left)
        # At once: a sender that waits for room would else wait for a state that comes of it.
        self._run.release(needed)
        self.last += 1
        self._asked = [0] * len(self._asked)

    def close(self) -> None:
        """Let others use the folder; a second time, nothing happens."""
        if self._checkpoint is not None:
            self._checkpoint.close()

    def _state(self) -> StateData:
        outputs = [output.position() for output in self._kept.outputs]
        planned = {str(n): _written_place(place) for n, place in self.planned.items()}
        return {"run": self._run.state(), "planned": planned, "outputs": outputs}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no garbage: of a large state everything is new, and nothing of it is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _written_place(place: Split) -> list[int | None]:
    return [place.start, place.end, place.line]


def _read_plan(written: Sequence[Any]) -> BatchPlan:
    places, ended = written
    return BatchPlan([(number, Split(*edges)) for number, *edges in places], ended)
