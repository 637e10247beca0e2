"""Which way a score goes when a value rises, and why that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Direction", "Proof"]

Direction = Literal["rises", "falls", "constant"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What a score does when a variable rises, if that can be shown, and why (not).

    `rises` says that it does not fall, `falls` that it does not rise.
    """

    direction: Direction | None
    why: str
