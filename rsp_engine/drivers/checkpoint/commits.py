"""The commits of a run over splits, from which it resumes after a crash.

Between two commits lies a micro-batch. The splits of one that must be repeated exactly are logged
before it is run, and the responses of services before an answer that depends on them is emitted.
Fetches that the budget of a service pays for are logged before they are sent, too.
When all answers are emitted, the state, the splits, the positions of the outputs and the responses
are committed together. Without a folder nothing is written, and live sources only release what was
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from rsp_engine.errors import StateError
from rsp_engine.garbage import no_garbage_collection
from rsp_engine.io.sources.splits import Split
from rsp_engine.model.state import damage_guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rsp_engine.drivers.checkpoint.logged_state import LoggedState
    from rsp_engine.drivers.checkpoint.store import Checkpoint
    from rsp_engine.drivers.splits.split_run import SplitRun
    from rsp_engine.model.state import StateData
    from rsp_engine.replica.endpoints.recording import RecordedCall, RecordingEndpoint

__all__ = ["BatchPlan", "CheckpointSpec", "Commits", "CommittedOutput", "RewindableOutput"]


class RewindableOutput(Protocol):
    """A sink of answers or dead letters."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Flush to disk, and return the position as plain data."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Drop what was written after a position, or all for None; called before any write."""


@runtime_checkable
class CommittedOutput(Protocol):
    """An output that passes on what was written once it is committed, and may run full."""

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be read until the output has room."""

    def committed(self) -> None:
        """Pass on what was written before the last position."""


def rewind_outputs(outputs: Sequence[RewindableOutput], positions: Sequence[Any] | None) -> None:
    """Rewind outputs to their positions, or to their start; raise if their number differs."""
    if positions is not None and len(positions) != len(outputs):
        raise StateError(
            "the run of the checkpoint wrote other outputs than this one: "
            f"{len(positions)}, not {len(outputs)}",
            "write answers and dead letters as before, or name another folder for the checkpoint",
        )
    for number, output in enumerate(outputs):
        output.go_back(None if positions is None else positions[number])


class CheckpointSpec(NamedTuple):
    """The folder of a checkpoint, the identity of its run, and what is restored with it."""

    folder: str | None = None
    identity: Mapping[str, Any] = {}
    recordings: Sequence[RecordingEndpoint] = ()
    """The endpoints that record the calls of services."""
    outputs: Sequence[RewindableOutput] = ()
    """The sinks of answers and dead letters."""


class BatchPlan(NamedTuple):
    """The plan of a micro-batch."""

    splits: Sequence[tuple[int, Split]]
    """What it reads: splits, each with the number of its source."""
    ended: Sequence[int] = ()
    """The numbers of the sources that have no more splits."""


class Commits:
    """The commits of a run, and the splits that it has read."""

    def __init__(self, run: SplitRun, spec: CheckpointSpec) -> None:
        self._run = run
        self._spec = spec
        self._checkpoint: Checkpoint | None = None
        if spec.folder is not None:
            # Most runs have no checkpoint.
            from rsp_engine.drivers.checkpoint.store import Checkpoint

            self._checkpoint = Checkpoint(spec.folder, dict(spec.identity))
        self.last = -1
        """The number of the last micro-batch that was committed, -1 before the first."""
        self.planned: dict[int, Split] = {}
        """The last split that was read of each source."""
        self.broken: BatchPlan | None = None
        """The plan of the micro-batch that broke off, if it must be repeated exactly."""
        self._calls = [0] * len(spec.recordings)  # of each service in this micro-batch
        self._unwritten: list[list[Any]] = []
        self._waiting: list[CommittedOutput] = []
        """The outputs that wait for commits."""

    @property
    def folder(self) -> Path | None:
        """The folder of the checkpoint, if there is one."""
        return None if self._checkpoint is None else self._checkpoint.folder

    def restore(self, *, is_strict: bool) -> None:
        """Resume from the last commit; services repeat their responses since then.

        With `is_strict`, the micro-batch that broke off is repeated exactly, and so are its calls
        of services. Otherwise it may end elsewhere: from the first call that differs, services are
        called again.
        """
        if self._checkpoint is None:
            rewind_outputs(self._spec.outputs, None)
        else:
            with no_garbage_collection():
                self._restore(self._checkpoint.last(), is_strict=is_strict)
        self._waiting = [each for each in self._spec.outputs if isinstance(each, CommittedOutput)]
        self._pass_on()  # what the process before this one had committed

    def _restore(self, saved: LoggedState, *, is_strict: bool) -> None:
        self.last, state = saved.batch, saved.state
        with damage_guard("the run"):
            if state is not None:
                self.planned = {int(number): Split(*p) for number, p in state["planned"].items()}
                self._run.restore(state["run"], self.planned)
                self._run.release(self._run.needed(self.planned))
            plans = [note["plan"] for note in saved.notes if "plan" in note]
            self.broken = _read_plan(plans[-1]) if plans and is_strict else None
            calls = self._noted_calls(saved.notes)
        for recording, logged in zip(self._spec.recordings, calls, strict=True):
            recording.replay(logged, is_strict=is_strict)
            recording.before_fetch = self.note
        rewind_outputs(self._spec.outputs, None if state is None else state["outputs"])

    def _noted_calls(self, notes: Iterable[Any]) -> list[list[RecordedCall]]:
        """Return the calls of each service in the micro-batch that broke off."""
        calls: list[list[RecordedCall]] = [[] for _ in self._spec.recordings]
        for number, start, later in (each for note in notes for each in note.get("calls", ())):
            calls[number][start:] = later  # replaces what followed before a call that differed
        return calls

    def plan(self, plan: BatchPlan) -> None:
        """Log the plan of the next micro-batch, before it is run."""
        if self._checkpoint is not None:
            splits = [[number, *_split_data(split)] for number, split in plan.splits]
            self._checkpoint.note({"plan": [splits, [*plan.ended]]})

    def note(self) -> None:
        """Log the responses of services, before an answer that depends on them is emitted."""
        if self._checkpoint is None:
            return
        for number, recording in enumerate(self._spec.recordings):
            replayed, new, completes = recording.take()
            self._calls[number] += replayed - completes
            if new:
                self._unwritten.append([number, self._calls[number], new])
                self._calls[number] += len(new)
        if self._unwritten:
            self._checkpoint.note({"calls": self._unwritten})
            self._unwritten = []

    def commit(self) -> None:
        """Commit the state, and release what live sources keep for it.

        If the checkpoint cannot be written, raise; the micro-batch can be committed later.
        """
        needed = self._run.needed(self.planned)
        if self._checkpoint is not None:
            self.note()
            # Calls that are not replayed yet belong to the next micro-batch.
            waiting = [[n, 0, r.waiting()] for n, r in enumerate(self._spec.recordings)]
            left = {"calls": waiting} if any(calls for *_, calls in waiting) else None
            self._checkpoint.write_state(self.last + 1, self._state(), left)
        self._pass_on()
        # Now, not with the next commit: that may need what a blocked sender has to send.
        self._run.release(needed)
        self.last += 1
        self._calls = [0] * len(self._calls)

    @property
    def is_full(self) -> bool:
        """Whether an output has no room, so that the input has to wait."""
        return any(output.is_full for output in self._waiting)

    def _pass_on(self) -> None:
        for output in self._waiting:
            output.committed()

    def close(self) -> None:
        """Release the folder for other runs. Idempotent."""
        if self._checkpoint is not None:
            self._checkpoint.close()

    def _state(self) -> StateData:
        outputs = [output.position() for output in self._spec.outputs]
        planned = {str(number): _split_data(split) for number, split in self.planned.items()}
        return {"run": self._run.state(), "planned": planned, "outputs": outputs}


def _split_data(split: Split) -> list[int | None]:
    return [split.start, split.end]


def _read_plan(logged: Sequence[Any]) -> BatchPlan:
    splits, ended = logged
    return BatchPlan([(number, Split(*edges)) for number, *edges in splits], ended)
