"""A folder of RDF files: an element is a file; its time is the last number in the file name.

    observations/data_07.ttl      7 ms, or 7 s with the option unit=s
    observations/data_08.nt.gz    8

Files are read in the order of their times, then of their names. Hidden files are ignored. Any other
file that is not RDF is refused when the folder is opened: the user may expect it to be read.
"""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import pyoxigraph as ox

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.files.rdf import MalformedRdfError, graph_of
from rsp_engine.io.sources.inputs import FileInput, InputBroken, local_path
from rsp_engine.io.sources.splits import Split
from rsp_engine.io.sources.times import TIME_UNITS, from_number
from rsp_engine.model.streams import DeadLetter, Element
from rsp_engine.monitor.run_monitor import Extent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.io.sources.source import BlankNodeScope
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.times import TimeUnit

__all__ = ["LARGEST_FILE", "TurtleFiles", "open_turtle_files"]

LARGEST_FILE = 64 << 20
"""The largest file, in bytes, after decompression."""

_SYNTAXES = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".turtle": ox.RdfFormat.TURTLE,
    ".nt": ox.RdfFormat.N_TRIPLES,
}
_NUMBER = re.compile(r"[0-9]+")


def open_turtle_files(spec: Spec) -> TurtleFiles:
    """Open a folder of RDF files."""
    folder = local_path(spec.place)
    if folder is None or not folder.is_dir():
        hint = "turtle-files reads every .ttl and .nt file of a folder as one graph"
        raise SourceError(f"{spec.name}: it is not a folder", hint)
    unit = cast("TimeUnit", spec.choice("unit", TIME_UNITS))
    return TurtleFiles(spec.place, unit, _files_in(spec.place, folder))


class TurtleFiles:
    """A stream of files, one graph each."""

    blank_node_scope: BlankNodeScope = "element"

    def __init__(self, name: str, unit: TimeUnit, files: list[Path]) -> None:
        self.name = name
        self._unit = unit
        self._files = files
        self._done = 0

    can_be_cut = True
    leans_on_others = False

    def cut(self, size: int, since: Split | None = None) -> Iterator[Split]:
        """Yield splits of some files each.

        A file counts as a thousand bytes, to avoid looking up the sizes of all files first.
        """
        count = max(1, size // 1000)
        start = 0 if since is None else len(self._files) if since.end is None else since.end
        for begin in range(start, len(self._files), count):
            is_last = begin + count >= len(self._files)
            yield Split(begin, None if is_last else begin + count)

    def part(self, split: Split) -> TurtleFiles:
        """Return the files of a split."""
        undated, dated = self._sorted()
        files = [*undated, *(each.file for each in dated)]
        return TurtleFiles(self.name, self._unit, files[split.start : split.end])

    def _sorted(self) -> tuple[dict[Path, str], list[_DatedFile]]:
        """Return the files without a time, with the reason, and the others in reading order."""
        undated: dict[Path, str] = {}
        dated: list[_DatedFile] = []
        for file in self._files:
            try:
                dated.append(_DatedFile(_time_in(file, self._unit), file.name, file))
            except ValueError as error:
                undated[file] = str(error)
        return undated, sorted(dated)

    def __iter__(self) -> Iterator[Element | DeadLetter]:
        """Read the files in the order of time; those without a time come first."""
        self._done = 0
        undated, dated = self._sorted()
        for file, reason in undated.items():
            yield _set_aside(file, reason)
            self._done += 1
        for each in dated:
            yield _read(each)
            self._done += 1

    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(file.stat().st_size for file in self._files if file.is_file())

    def extent(self) -> Extent:
        """Return how many files were read."""
        return Extent(self._done, len(self._files), "files")


class _DatedFile(NamedTuple):
    """A file and its time; tuples sort in reading order."""

    time: int
    name: str
    file: Path


class _UnreadableError(ValueError):
    """The content of a file cannot be read: the bytes so far, and the reason."""

    def __init__(self, data: bytes, reason: str) -> None:
        super().__init__(reason)
        self.data = data


def _files_in(name: str, folder: Path) -> list[Path]:
    try:
        files = sorted(folder.iterdir(), key=attrgetter("name"))
    except OSError as error:
        raise SourceError(f"{name}: it cannot be read: {error.strerror}") from None
    shown = [file for file in files if not file.name.startswith(".")]
    for file in shown:
        if _extension(file) not in _SYNTAXES or not file.is_file():
            known = ", ".join(_SYNTAXES)
            hint = f"files are named *{known}, each also with .gz; move the others, or hide them"
            raise SourceError(f"{name}: {file.name} is not a file of one graph", hint)
    if not shown:
        raise SourceError(f"{name}: the folder is empty", "check the path")
    return shown


def _read(dated: _DatedFile) -> Element | DeadLetter:
    file = dated.file
    try:
        data = _content(file)
        triples = graph_of(data, _SYNTAXES[_extension(file)])
    except _UnreadableError as error:
        return DeadLetter(str(file), 1, error.data, str(error))
    except MalformedRdfError as error:
        return DeadLetter(str(file), 1, data, f"the graph cannot be read: {error}")
    return Element(dated.time, triples, str(file), 1, data)


def _set_aside(file: Path, reason: str) -> DeadLetter:
    try:
        return DeadLetter(str(file), 1, _content(file), reason)
    except _UnreadableError as error:
        return DeadLetter(str(file), 1, error.data, f"{reason}; {error}")


def _content(file: Path) -> bytes:
    """Return the content of a file, decompressed and without a byte order mark."""
    parts: list[bytes] = []
    size = 0
    try:
        for chunk in FileInput(str(file), file).chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > LARGEST_FILE:
                raise _UnreadableError(b"", f"the file is larger than {LARGEST_FILE} bytes")
    except InputBroken as broken:
        raise _UnreadableError(b"".join(parts), str(broken)) from None
    except SourceError as error:  # the file was removed after the folder was opened
        raise _UnreadableError(b"", error.message) from None
    return b"".join(parts).removeprefix(b"\xef\xbb\xbf")


def _extension(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).suffix


def _time_in(file: Path, unit: TimeUnit) -> int:
    stem = Path(file.name.removesuffix(".gz")).stem
    numbers = _NUMBER.findall(stem)
    if not numbers:
        raise ValueError("the name of the file holds no number that could be its time")
    try:
        return from_number(numbers[-1], unit)
    except ValueError as error:
        raise ValueError(f"the time in the name of the file {error}") from None
