"""Rewindable outputs: what was written after the last commit is dropped, and written again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rsp_engine.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RewindableOutput", "rewind_outputs"]


class RewindableOutput(Protocol):
    """A sink of answers or dead letters."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Flush to disk, and return the position as plain data."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Drop what was written after a position, or all for None; called before any write."""


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
