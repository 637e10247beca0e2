"""The protocol that all sources implement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.streams import DeadLetter, Element

__all__ = ["BlankNodeScope", "ElementSource"]

BlankNodeScope = Literal["element", "stream"]
"""The scope of a blank node label: one element, or the whole stream."""


class ElementSource(Protocol):
    """A stream of elements, with dead letters for input that is not a valid element."""

    @property
    def name(self) -> str:
        """Return the name of the source, for messages."""

    @property
    def blank_node_scope(self) -> BlankNodeScope:
        """Return the scope of blank node labels."""

    def __iter__(self) -> Iterator[Element | DeadLetter]: ...
