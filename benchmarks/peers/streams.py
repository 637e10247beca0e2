"""The streams that are compared: files of N-Quads, and the same as CSV for peers without RDF."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rsp_engine.model.arrays import Integers

__all__ = ["EX", "FEW", "LONG", "MANY", "MIXED", "STAR", "VALUE", "Stream", "write_stream"]

EX = "http://example.org/"
VALUE = f"{EX}value"
_START_MS = 1000
_INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


class Numbers(NamedTuple):
    """The subject, the value and the time of each triple."""

    subjects: Integers
    values: Integers
    times: Integers


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a size, and how to write it.

    `per_s` is the number of triples of a second of event time.
    """

    name: str
    triples: int
    subjects: int
    per_s: int
    lines: Callable[[Numbers], Iterator[str]]
    is_permuted: bool = False
    """Whether each subject occurs equally often, instead of by chance."""

    def numbers(self) -> Numbers:
        """Draw the triples; the same in every run."""
        draw = np.random.default_rng(1)
        subjects = draw.integers(0, self.subjects, self.triples)
        if self.is_permuted:
            subjects = draw.permutation(np.arange(self.triples) % self.subjects)
        values = draw.integers(0, 1_000_000, self.triples)
        return Numbers(subjects, values, _START_MS + np.arange(self.triples) * 1000 // self.per_s)

    def reduced(self, share: float) -> Stream:
        """Return a share of the stream, at a lower rate: windows are as many, and smaller."""
        triples, per_s = int(self.triples * share), max(1, int(self.per_s * share))
        subjects = int(self.subjects * share) if self.is_permuted else self.subjects
        return replace(self, triples=triples, subjects=subjects, per_s=per_s)

    def first(self, triples: int) -> Stream:
        """Return the beginning of the stream."""
        return replace(self, triples=min(triples, self.triples))


def plain_lines(numbers: Numbers) -> Iterator[str]:
    """Yield the value of a sensor in each line."""
    for subject, value, time in _rows(numbers):
        yield f'<{EX}sensor/{subject}> <{VALUE}> "{value}"^^{_INTEGER} <{EX}g/{time}> .\n'


def mixed_lines(numbers: Numbers) -> Iterator[str]:
    """Yield the same values among other predicates, with longer names and lines of other forms.

    Three lines in five are values. One in twenty is not plain: tabs, several spaces, a comment, or
    escapes in a text.
    """
    base = "http://sensors.example.com/building/west-wing/floor"
    for number, (subject, value, time) in enumerate(_rows(numbers)):
        name = f"<{base}/{subject % 40}/room/{subject % 7}/sensor/{subject:08}>"
        graph = f"<http://streams.example.com/observations/hourly/{time}>"
        match number % 20:
            case 0:
                yield f'{name}\t<{VALUE}>   "{value}"^^{_INTEGER}\t{graph}  . # by hand\n'
            case 1 | 6 | 11 | 16:
                yield f'{name} <{EX}label> "capteur n° {value}"@fr {graph} .\n'
            case 2 | 7:
                yield f'{name} <{EX}note> "line one\\nline \\"two\\" \\u00e9 {value}" {graph} .\n'
            case 12 | 17:
                yield f"{name} <{EX}seenBy> <{base}/people/{value}> {graph} .\n"
            case _:
                yield f'{name} <{VALUE}> "{value}"^^{_INTEGER} {graph} .\n'


def star_lines(numbers: Numbers) -> Iterator[str]:
    """Yield readings: two triples of each, a third of one in four, and whom a sensor follows."""
    for number, (subject, value, time) in enumerate(_rows(numbers)):
        name, graph = f"<{EX}reading/{number // 4}>", f"<{EX}g/{time}>"
        match number % 4:
            case 0:
                yield f'{name} <{VALUE}> "{value}"^^{_INTEGER} {graph} .\n'
            case 1:
                yield f"{name} <{EX}sensor> <{EX}sensor/{subject}> {graph} .\n"
            case 2 if number % 16 == 2:
                yield f'{name} <{EX}alarm> "{value % 10}"^^{_INTEGER} {graph} .\n'
            case _:
                followed = f"<{EX}sensor/{value % 1000}>"
                yield f"<{EX}sensor/{subject}> <{EX}follows> {followed} {graph} .\n"


FEW = Stream("few", 1_000_000, 1_000, 10_000, plain_lines)
MANY = Stream("many", 2_000_000, 1_000_000, 10_000, plain_lines, is_permuted=True)
LONG = Stream("long", 1_000_000, 1_000, 500, plain_lines)
MIXED = Stream("mixed", 1_000_000, 1_000, 10_000, mixed_lines)
STAR = Stream("star", 1_000_000, 1_000, 10_000, star_lines)


def write_stream(stream: Stream, folder: Path) -> Path:
    """Write a stream as N-Quads and as CSV, unless it is there, and return the file of N-Quads."""
    path = folder / f"{stream.name}-{stream.triples}.nq"
    if not path.exists():
        numbers = stream.numbers()
        _write(path.with_suffix(".csv"), _csv_lines(numbers))
        _write(path, stream.lines(numbers))
    return path


def _rows(numbers: Numbers) -> Iterator[tuple[int, int, int]]:
    return zip(*(column.tolist() for column in numbers), strict=True)


def _csv_lines(numbers: Numbers) -> Iterator[str]:
    yield "subject,value,time\n"
    for subject, value, time in _rows(numbers):
        yield f"{EX}sensor/{subject},{value},{time}\n"


def _write(path: Path, lines: Iterable[str]) -> None:
    """Write a file that is either whole or not there."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    part.rename(path)
