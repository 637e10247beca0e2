"""The content of a log of states, as a run resumes from it; without a checkpoint it is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rsp_engine.model.state import StateData

__all__ = ["LoggedState"]


class LoggedState(NamedTuple):
    """The last commit, and the notes since then."""

    batch: int = -1
    state: StateData | None = None
    notes: tuple[Any, ...] = ()
