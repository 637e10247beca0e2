"""Helpers that read a source and show its elements and dead letters."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from rsp_engine.io.sources import inputs, open_source
from rsp_engine.model.streams import DeadLetter, Element

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EX = "http://example.org/"


def read(spec: object) -> tuple[list[Element], list[DeadLetter]]:
    """Return the elements of a source and its dead letters."""
    found = list(open_source(str(spec)))
    elements = [item for item in found if isinstance(item, Element)]
    return elements, [item for item in found if isinstance(item, DeadLetter)]


def shown(elements: list[Element]) -> list[tuple[int, str]]:
    """Return the time and the triples of each element, with short names."""
    return [
        (element.timestamp, " | ".join(short(triple) for triple in element.triples))
        for element in elements
    ]


def short(triple: object) -> str:
    return str(triple).replace(EX, "").replace("<", "").replace(">", "")


def places(letters: list[DeadLetter]) -> list[tuple[int, bytes]]:
    """Return the position and the bytes of each dead letter."""
    return [(letter.position, letter.raw) for letter in letters]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Limit the chunks that sources read to a number of bytes."""
    with patch.object(inputs, "BLOCK_SIZE", size):
        yield
