"""The history file: what an endpoint said over time, written for the recorded endpoint.

    time,user,followers
    1700000000000,<http://example.org/ann>,10
    1700000060000,<http://example.org/ann>,12
    1700000060000,<http://example.org/bob>,

A file is only ever appended to. Each time at which the endpoint was asked adds the solutions of the
keys whose solutions have changed since; a row with only a time and a key means that it has none
any more. The rows of a time are written at once. If a crash cuts them, they are removed when the
file is opened again: the next time has them.
"""

from __future__ import annotations

import csv
import os
from io import StringIO
from typing import TYPE_CHECKING

from rsp_engine.errors import SinkError
from rsp_engine.replica.store.terms import key_text, read_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import Key, RemotePattern, RemoteSolution

__all__ = ["HistoryFile"]

_Cells = tuple[str, ...]
_NOTHING: list[_Cells] = [()]
"""The solutions of a key that has none."""


class HistoryFile:
    """Appends the answers of an endpoint to a file. Memory: the last solutions of each key."""

    def __init__(self, path: Path, pattern: RemotePattern) -> None:
        """Open a file, or go on with one; raise a `SinkError` if it has other columns."""
        if not pattern.keys:
            raise SinkError(
                f"a history has a key, but the clause of <{pattern.service}> shares no variable",
                "record a clause that is joined with the stream",
            )
        self._path = path
        self._pattern = pattern
        self._header = ("time", *pattern.keys, *pattern.variables)
        self._last: dict[_Cells, list[_Cells]] = {}
        self._time = -1
        try:
            self._resume() if path.exists() and path.stat().st_size else self._append(
                [self._header]
            )
        except OSError as error:
            raise SinkError(f"{path} cannot be written: {error.strerror}") from None

    @property
    def keys(self) -> int:
        """The number of keys that have solutions."""
        return sum(any(map(any, solutions)) for solutions in self._last.values())

    def append(self, answers: Mapping[Key, tuple[RemoteSolution, ...]], now: int) -> int:
        """Append what has changed since the last call; return the number of rows.

        `answers` has all keys of the endpoint. A time that is not after the last one becomes the
        millisecond after it, since clocks may be set back.
        """
        time = max(now, self._time + 1)
        found = {tuple(map(_cell, key)): self._rows(of) for key, of in answers.items()}
        changed = {key: rows for key, rows in found.items() if self._last.get(key) != rows}
        for key, rows in self._last.items():
            if rows != _NOTHING and key not in found:
                changed[key] = _NOTHING
        width = len(self._pattern.variables)
        rows = [
            (str(time), *key, *(row or ("",) * width))
            for key, solutions in sorted(changed.items())
            for row in solutions
        ]
        if rows:
            try:
                self._append(rows)
            except OSError as error:
                raise SinkError(f"{self._path} cannot be written: {error.strerror}") from None
            self._time = time
            self._last |= changed
        return len(rows)

    def _rows(self, solutions: Iterable[RemoteSolution]) -> list[_Cells]:
        """Return the solutions of a key as cells, in an order of their own; `[()]` for none."""
        names = self._pattern.variables
        rows = [tuple(_cell(s[n]) if n in s else "" for n in names) for s in solutions]
        return sorted(row if any(row) else () for row in rows) or _NOTHING

    def _append(self, rows: Iterable[_Cells]) -> None:
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        with self._path.open("ab") as file:
            file.write(text.getvalue().encode())
            file.flush()
            os.fsync(file.fileno())

    def _resume(self) -> None:
        """Read the last solutions of each key; remove the rows of a time that were cut."""
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        rows = list(csv.reader(StringIO(whole.decode("utf-8-sig"), newline="")))
        if not rows or tuple(rows[0]) != self._header:
            has = ", ".join(rows[0]) if rows else "no line"
            raise SinkError(
                f"{self._path} is no history of this clause: its columns are {has}, not "
                f"{', '.join(self._header)}",
                "choose another file",
            )
        if len(whole) < len(content):
            # A time that was cut itself may be that of the last rows: these go too.
            cut, comma, _ = content[len(whole) :].decode(errors="replace").partition(",")
            last = rows[-1][0]
            is_last = last == cut if comma else last.startswith(cut)
            while is_last and len(rows) > 1 and rows[-1][0] == last:
                whole = whole[: whole.rstrip(b"\n").rfind(b"\n") + 1]
                rows.pop()
            os.truncate(self._path, len(whole))
        self._read(rows[1:])

    def _read(self, rows: Iterable[list[str]]) -> None:
        keys = len(self._pattern.keys)
        since: dict[_Cells, str] = {}
        for number, cells in enumerate(rows, 2):
            if len(cells) != len(self._header) or not cells[0].isdecimal():
                raise SinkError(f"line {number} of {self._path} is damaged", "choose another file")
            key, solution = tuple(cells[1 : 1 + keys]), tuple(cells[1 + keys :])
            if since.get(key) != cells[0]:
                since[key], self._last[key] = cells[0], []
            self._last[key].append(solution if any(solution) else ())
            self._time = max(self._time, int(cells[0]))


def _cell(term: Term) -> str:
    """Write a term as the recorded endpoint reads it: numbers bare, all else as N-Triples.

    >>> from pyoxigraph import Literal, NamedNode
    >>> _cell(Literal(12)), _cell(Literal("12")), _cell(NamedNode("urn:a"))
    ('12', '"12"', '<urn:a>')
    """
    [text] = key_text((term,))
    bare = getattr(term, "value", "")
    try:
        return bare if read_term(bare) == term else text
    except ValueError:
        return text
