"""Monotonicity of a score in one of its variables, with the reason why it is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Direction", "Proof"]

Direction = Literal["rises", "falls", "constant"]


@dataclass(frozen=True, slots=True)
class Proof:
    """The direction of a score when a variable rises, None if unproven, and the reason.

    `rises` means that the score never falls, `falls` that it never rises.
    """

    direction: Direction | None
    why: str
