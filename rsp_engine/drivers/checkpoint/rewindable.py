"""Outputs that can go back: what was written after a commit is written again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from rsp_engine.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RewindableOutput", "rewind_outputs"]


class RewindableOutput(Protocol):
    """Something that answers or dead letters are written to."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Bring everything to disk, and return as plain data how far it is."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Forget what was written after a position, before anything is written; none: all of it."""


def rewind_outputs(outputs: Sequence[RewindableOutput], positions: Sequence[Any] | None) -> None:
    """Let outputs go back to where they were; none: to their start. Others are refused."""
    if positions is not None and len(positions) != len(outputs):
        raise StateError(
            "the run of the checkpoint wrote other outputs than this one: "
            f"{len(positions)}, not {len(outputs)}",
            "write answers and dead letters as before, or name another folder for the checkpoint",
        )
    for place, output in enumerate(outputs):
        output.go_back(None if positions is None else positions[place])
