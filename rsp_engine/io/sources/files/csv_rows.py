"""The records of a table, each with its bytes and the number of its first line.

A record can span lines, within quotes. Where the quotes of a record go wrong, only its first line
is set aside, and reading goes on with the next one: otherwise one quote that nobody closed would
swallow the lines after it.
"""

from __future__ import annotations

import csv
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.io.sources.files.blocks import Gap, lines, text_blocks
from rsp_engine.model.streams import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.inputs import Input

__all__ = ["CsvRecord", "CsvRecords"]


@dataclass(frozen=True, slots=True)
class CsvRecord:
    """The fields of one record, the number of its first line, and its bytes."""

    fields: list[str]
    position: int
    raw: bytes


class CsvRecords:
    """Reads a table record by record."""

    def __init__(self, source: Input, delimiter: str) -> None:
        self._name = source.name
        self._delimiter = delimiter
        self._lines = _Lines(source)

    def __iter__(self) -> Iterator[CsvRecord | DeadLetter]:
        """Go on from where reading has come to."""
        reader = self._reader()
        while True:
            taken = self._lines.start()
            try:
                fields = next(reader, None)
            except csv.Error as error:
                yield from self._lines.take_letters()
                number, raw = taken[0]
                yield DeadLetter(self._name, number, raw, f"the row cannot be read: {error}")
                self._lines.give_back(taken[1:])
                reader = self._reader()
                continue
            yield from self._lines.take_letters()
            if fields is None:
                return
            if fields:
                yield self._record(fields)

    def _record(self, fields: list[str]) -> CsvRecord | DeadLetter:
        taken = self._lines.taken
        raw = taken[0][1] if len(taken) == 1 else b"".join([raw for _, raw in taken])
        if not self._lines.are_text:
            return DeadLetter(self._name, taken[0][0], raw, "the row is not UTF-8")
        return CsvRecord(fields, taken[0][0], raw)

    def _reader(self) -> Iterator[list[str]]:
        return csv.reader(self._lines, delimiter=self._delimiter, strict=True)


class _Lines:
    """The lines that a record is made of, one at a time, and back again if they make none."""

    def __init__(self, source: Input) -> None:
        self.taken: list[tuple[int, bytes]] = []
        self.are_text = True
        self._letters: list[DeadLetter] = []
        self._back: deque[tuple[int, bytes]] = deque()
        self._ahead = self._read(source)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._back.popleft() if self._back else next(self._ahead)
        self.taken.append(line)
        try:
            return line[1].decode()
        except UnicodeDecodeError:
            self.are_text = False
            return line[1].decode(errors="replace")

    def start(self) -> list[tuple[int, bytes]]:
        """Start a record; return the list that its lines go to."""
        self.taken = []
        self.are_text = True
        return self.taken

    def give_back(self, taken: list[tuple[int, bytes]]) -> None:
        """Put lines before those that are still to be read."""
        self._back.extendleft(reversed(taken))

    def take_letters(self) -> list[DeadLetter]:
        """Return what was found between lines since the last time."""
        letters, self._letters = self._letters, []
        return letters

    def _read(self, source: Input) -> Iterator[tuple[int, bytes]]:
        for block in text_blocks(source):
            if isinstance(block, Gap):
                self._letters.append(block.letter)
            else:
                yield from lines(block)
