"""Outputs that can go back: what was written after a commit is written again."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Output"]


class Output(Protocol):
    """Something that answers or dead letters are written to."""

    def position(self) -> Any:  # noqa: ANN401 - plain data
        """Bring everything to disk, and return as plain data how far it is."""

    def go_back(self, position: Any) -> None:  # noqa: ANN401 - plain data
        """Forget what was written after a position, before anything is written; none: all of it."""
