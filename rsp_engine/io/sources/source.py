"""What every source is, whatever it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.streams import DeadLetter, Element

__all__ = ["BlankNodeScope", "ElementSource"]

BlankNodeScope = Literal["element", "stream"]
"""How far a blank node label reaches: one element, or the whole stream."""


class ElementSource(Protocol):
    """A stream that can be read: elements, and dead letters for what could not become one."""

    @property
    def name(self) -> str:
        """Return what the user named, for messages."""

    @property
    def blank_node_scope(self) -> BlankNodeScope:
        """Return how far a blank node label reaches."""

    def __iter__(self) -> Iterator[Element | DeadLetter]: ...
