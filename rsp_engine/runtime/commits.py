"""Commits: what a driver that reads place by place writes down, so that it can go on after a crash.

Between two commits lies a batch. What services answer in it is noted before anything that comes of
it leaves; when everything has left, the state, the places, the positions of the outputs and the
answers of services are committed together. Without a folder nothing is written, and sources forget
what was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.replica.recording import written_down
from rsp_engine.runtime.checkpoint import Checkpoint
from rsp_engine.runtime.outputs import go_back
from rsp_engine.runtime.sources.cuts import Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rsp_engine.operators.state import State
    from rsp_engine.replica.recording import Call, Recording
    from rsp_engine.runtime.outputs import Output
    from rsp_engine.runtime.placed import PlacedRun

__all__ = ["Commits", "Kept"]


class Kept(NamedTuple):
    """What is kept, and where: the folder, and what has to be there again to go on."""

    folder: str | None = None
    identity: Mapping[str, Any] = {}
    recordings: Sequence[Recording] = ()
    """What services are asked through."""
    outputs: Sequence[Output] = ()
    """Where answers are written to by whoever takes them."""


class Commits:
    """The commits of a run, and the places that it has read."""

    def __init__(self, run: PlacedRun, kept: Kept) -> None:
        self._run = run
        self._kept = kept
        self._checkpoint = (
            None if kept.folder is None else Checkpoint(kept.folder, dict(kept.identity))
        )
        self.last = -1
        """The number of the last batch that was committed, -1 before the first."""
        self.planned: dict[int, Place] = {}
        """The last place of each source that was read in places."""
        self._needed: dict[int, int] = {}
        self._calls = self._no_calls()

    @property
    def folder(self) -> Path | None:
        """Where commits are written, if anywhere."""
        return None if self._checkpoint is None else self._checkpoint.folder

    def restore(self, *, is_strict: bool) -> None:
        """Go on from the last commit; services answer as they did before the batch broke off.

        `is_strict` says that the batch is the same again, and so are its questions. Otherwise it
        may end elsewhere, and from the first other question on services are asked anew.
        """
        saved = None if self._checkpoint is None else self._checkpoint.last()
        state: State | None = None
        if saved is not None:
            self.last, state = saved
            self.planned = {int(number): Place(*p) for number, p in state["planned"].items()}
            self._run.restore(state["run"], self.planned)
        self._replay(is_strict=is_strict)
        go_back(self._kept.outputs, None if state is None else state["outputs"])

    def _replay(self, *, is_strict: bool) -> None:
        said = [] if self._checkpoint is None else self._checkpoint.fetched(self.last + 1)
        for recording, calls in zip(self._kept.recordings, said or self._no_calls(), strict=True):
            recording.replay(calls, is_strict=is_strict)

    def note(self) -> None:
        """Write down what services answered, before anything that comes of it leaves."""
        if self._checkpoint is None:
            return
        new = [recording.take() for recording in self._kept.recordings]
        if any(new):
            for known, more in zip(self._calls, new, strict=True):
                known.extend(more)
            self._write_calls()

    def _write_calls(self) -> None:
        calls = written_down(self._calls, self._kept.recordings)
        if self._checkpoint is not None and any(calls):
            self._checkpoint.write_fetched(self.last + 1, calls)

    def commit(self) -> None:
        """Write all that is known, and let sources forget what is not needed any more.

        If it cannot be written, that is raised, and the batch goes on: commit it later.
        """
        needed = self._run.needed(self.planned)
        if self._checkpoint is None:
            self._run.release(needed)
        else:
            self.note()
            self._checkpoint.write_state(self.last + 1, self._state())
            # What the state before the last one needs is kept, like that state itself.
            self._run.release(self._needed)
        self.last, self._needed, self._calls = self.last + 1, needed, self._no_calls()
        self._write_calls()  # what is not replayed yet belongs to the next batch

    def close(self) -> None:
        """Let others use the folder; a second time, nothing happens."""
        if self._checkpoint is not None:
            self._checkpoint.close()

    def _state(self) -> State:
        outputs = [output.position() for output in self._kept.outputs]
        planned = {str(n): [p.start, p.end, p.line] for n, p in self.planned.items()}
        return {"run": self._run.state(), "planned": planned, "outputs": outputs}

    def _no_calls(self) -> list[list[Call]]:
        return [[] for _ in self._kept.recordings]
