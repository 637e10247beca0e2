"""The cases of the semantics: files that say what goes into a run and what comes out of it.

A case is `tests/cases/semantics/NN-name.case`, where NN is the number of what it decides. On top
it says what that is, in plain words; sections follow, each after a line that begins with `--- `:

    --- query [NAME]         the text of a query; there can be several, each with a name
    --- file NAME            a file beside the queries
    --- run                  flags of `rsp run`
    --- stream IRI           elements; a stream that comes several times is in several files
    --- windows              a drawing for the reader
    --- answers              what goes to standard output
    --- dead letters         what goes to the dead letters; nothing if left out
    --- error CODE           the exit code, and what goes to standard error

An element is `1000  :a :p 1 .`: milliseconds, two blanks, and Turtle that knows the prefix `:`
as <http://example.org/>; or a line of JSON, taken as it is. `--- stream IRI in this order` says
that elements come so late that another order of reading is another stream.

The order of answers of different queries is not defined: they are compared query by query.
"""

from __future__ import annotations

import contextlib
import json
import shlex
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from rsp_engine.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["Case", "Outcome", "Stream", "load", "named", "run", "sections_of", "split"]

IN_THIS_ORDER = " in this order"
PREFIX = "@prefix : <http://example.org/> ."
DEAD_LETTERS = "dead.jsonl"


@dataclass(frozen=True, slots=True)
class Stream:
    """A file of a stream: its elements as lines of JSON."""

    iri: str
    lines: tuple[str, ...]
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gives; `error` is nothing where standard error does not matter."""

    answers: tuple[str, ...]
    dead_letters: tuple[str, ...] = ()
    exit_code: int = 0
    error: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What goes into a run, and what is expected of it."""

    name: str
    decision: int
    queries: tuple[str, ...]
    files: Mapping[str, str]
    flags: tuple[str, ...]
    streams: tuple[Stream, ...]
    expected: Outcome


def load(path: Path) -> Case:
    """Read the file of a case."""
    about, *sections = sections_of(path.read_text(encoding="utf-8"))
    queries = {f"{name or 'query'}.rspql": text for name, text in named(sections, "query")}
    files = dict(named(sections, "file"))
    flags = [flag for _, text in named(sections, "run") for flag in shlex.split(text)]
    streams = (_stream(name, text) for name, text in named(sections, "stream"))
    return Case(
        path.stem,
        int(about[1].removeprefix("4.").split()[0]),
        tuple(queries),
        queries | files,
        tuple(flags),
        tuple(streams),
        _expected(sections),
    )


def sections_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the head and the text of each section; the text on top has an empty head."""
    for section in f"--- \n{text}".split("\n--- "):
        head, _, body = section.removeprefix("--- ").partition("\n")
        yield head.strip(), body.strip("\n")


def named(sections: Sequence[tuple[str, str]], kind: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each section of a kind."""
    for head, text in sections:
        if head == kind or head.startswith(f"{kind} "):
            yield head.removeprefix(kind).strip(), text


def _stream(head: str, text: str) -> Stream:
    lines = tuple(_element(line) for line in text.splitlines())
    return Stream(head.removesuffix(IN_THIS_ORDER), lines, head.endswith(IN_THIS_ORDER))


def _element(line: str) -> str:
    if line.startswith("{"):
        return line
    timestamp, _, turtle = line.partition("  ")
    return json.dumps({"timestamp": int(timestamp), "graph": f"{PREFIX} {turtle}"})


def _expected(sections: Sequence[tuple[str, str]]) -> Outcome:
    lines = {head: tuple(text.splitlines()) for head, text in sections}
    code, error = next(named(sections, "error"), ("0", None))
    return Outcome(
        _by_query(lines["answers"]),
        lines.get("dead letters", ()),
        int(code),
        None if error is None else tuple(error.splitlines()),
    )


def _by_query(answers: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(answers, key=lambda line: str(json.loads(line)["query"])))


def split(case: Case, parts: int) -> Case:
    """Return the case with each stream that is in one file dealt out to several, line by line."""
    files = Counter(stream.iri for stream in case.streams)
    dealt = [
        part
        for stream in case.streams
        for part in (
            [stream]
            if stream.is_ordered or files[stream.iri] > 1
            else [replace(stream, lines=stream.lines[n::parts]) for n in range(parts)]
        )
    ]
    return replace(case, streams=tuple(dealt))


def run(case: Case, folder: Path, *flags: str) -> Outcome:
    """Run a case from within a folder, so that only bare names of files are shown."""
    for name, text in case.files.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    bound = [f"--stream={iri}={name}" for iri, name in _written(case, folder)]
    arguments = ["run", *case.queries, *bound, *case.flags, *flags]
    arguments.append(f"--dead-letters={DEAD_LETTERS}")
    with contextlib.chdir(folder):
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    letters = folder / DEAD_LETTERS
    return Outcome(
        _by_query(result.stdout.splitlines()),
        tuple(letters.read_text(encoding="utf-8").splitlines()) if letters.exists() else (),
        result.exit_code,
        None if case.expected.error is None else tuple(result.stderr.splitlines()),
    )


def _written(case: Case, folder: Path) -> Iterator[tuple[str, str]]:
    """Write the files of the streams, `s.jsonl`, `s-2.jsonl` and so on, and yield their names."""
    files: Counter[str] = Counter()
    for stream in case.streams:
        files[stream.iri] += 1
        number = f"-{files[stream.iri]}" if files[stream.iri] > 1 else ""
        name = f"{stream.iri.rpartition('/')[2]}{number}.jsonl"
        (folder / name).write_text("".join(f"{line}\n" for line in stream.lines), encoding="utf-8")
        yield stream.iri, name
