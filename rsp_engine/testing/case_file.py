"""Case files: what goes into a run and what comes out of it, as text.

On top, a case says what it shows, in plain words. Sections follow, each after a line that begins
with `--- `:

    --- query [NAME]         the text of a query; there can be several, each with a name
    --- file NAME            a file beside the queries
    --- run                  flags of `rsp run`
    --- stream IRI           elements; a stream that comes several times is in several files
    --- windows              a drawing of the windows, see `window_drawing`
    --- table                the answers as a table, see `answer_table`
    --- answers              or what goes to standard output, line by line
    --- dead letters         the reason why each element was set aside, such as `late`; or lines of
                             JSON. Nothing is set aside if left out
    --- error CODE           the exit code, and what goes to standard error

`--- query NAME from PATH` takes the text from a file, whose path is relative to the case; so do
`file` and `stream`. An element is `1000  :a :p 1 .`: a time, a blank, and Turtle that knows the
prefix `:` as <http://example.org/> and those of the queries; or a line of JSON, taken as it is.
`--- stream IRI in this order` says that elements come so late that another order of reading is
another stream.

The order of answers of different queries is not defined: they are compared query by query.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from rsp_engine.errors import CaseError, QuerySyntaxError
from rsp_engine.grammar import parse
from rsp_engine.testing.answer_table import AnswerTable
from rsp_engine.testing.difference import difference
from rsp_engine.testing.elements import USUAL_PREFIXES, element_lines, with_declarations
from rsp_engine.testing.window_drawing import WindowDrawing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = [
    "Case",
    "CaseOutcome",
    "CaseStream",
    "by_query",
    "case_files",
    "differences",
    "load_case",
    "named",
    "sections_of",
    "split",
]

IN_THIS_ORDER = " in this order"
KINDS = ("query", "file", "run", "stream", "windows", "table", "answers", "dead letters", "error")
NAMED = ("query", "file", "stream", "error")
"""The sections whose heads have more than the word."""

Sections = list[tuple[str, str]]
Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CaseStream:
    """A file of a stream: its elements as lines of JSON."""

    iri: str
    lines: tuple[str, ...]
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What a run gives; `error` is None where standard error does not matter."""

    answers: tuple[str, ...]
    dead_letters: tuple[str, ...] = ()
    exit_code: int = 0
    error: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What goes into a run, and what is expected of it."""

    name: str
    title: str
    queries: tuple[str, ...]
    """The names of the files of queries."""
    files: Mapping[str, str]
    flags: tuple[str, ...]
    streams: tuple[CaseStream, ...]
    expected: CaseOutcome
    table: str | None = None
    """The expected answers as a table; then `expected` has none."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    drawing: WindowDrawing | None = None


def case_files(paths: Sequence[str]) -> list[Path]:
    """Return the case files that paths name: files, and those in folders and their folders."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.rglob("*.case")) if path.is_dir() else [path]
        if not inside:
            raise CaseError(f"{path} has no case files", "their names end in .case")
        found += inside
    return found


def load_case(path: Path) -> Case:
    """Read a case file; raise `CaseError` if it is malformed."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise CaseError(f"{path} cannot be read: {reason}", "check the path") from None
    try:
        return _case(path, text)
    except CaseError as error:
        raise CaseError(f"{path}: {error.message}", error.hint) from None


def _case(path: Path, text: str) -> Case:
    (_, title), *sections = sections_of(text)
    _check(sections)
    sections = [_filled(head, body, path.parent) for head, body in sections]
    queries = {f"{name or 'query'}.rspql": body for name, body in named(sections, "query")}
    prefixes = _prefixes(queries.values())
    streams = tuple(_stream(name, body, prefixes) for name, body in named(sections, "stream"))
    flags = [flag for _, body in named(sections, "run") for flag in shlex.split(body)]
    files = dict(named(sections, "file"))
    for name in (*files, *queries):
        if not name or Path(name).is_absolute() or ".." in Path(name).parts:
            raise CaseError(f"the file {name!r} is not within the folder of the run", "rename it")
    table = next((body for _, body in named(sections, "table")), None)
    if table is not None:
        AnswerTable(table, prefixes)
    expected = _expected(sections)
    names = tuple(queries)
    return Case(
        path.stem,
        title,
        names,
        queries | files,
        tuple(flags),
        streams,
        expected,
        table,
        prefixes,
        next((WindowDrawing(body) for _, body in named(sections, "windows")), None),
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


def _check(sections: Sections) -> None:
    """Refuse sections that nobody reads, and a case that expects nothing."""
    for head, _ in sections:
        known = [k for k in KINDS if head == k or (k in NAMED and head.startswith(f"{k} "))]
        if not known:
            near = get_close_matches(head.partition(" ")[0], KINDS, 1)
            hint = f"did you mean `--- {near[0]}`?" if near else f"there are {', '.join(KINDS)}"
            raise CaseError(f"there is no section `--- {head}`", hint)
    heads = [head for head, _ in sections]
    for kind in ("run", "windows", "table", "answers", "dead letters"):
        if heads.count(kind) > 1:
            raise CaseError(f"it has several sections `--- {kind}`", "join them")
    if not any(named(sections, "query")):
        raise CaseError("it has no query", "add a section `--- query` or `--- query from PATH`")
    if ("table" in heads) == ("answers" in heads):
        if "table" in heads:
            raise CaseError("it expects a table and answers", "leave out one of them")
        if not any(named(sections, "error")):
            raise CaseError("it expects nothing", "add a section `--- table`")


def _filled(head: str, body: str, folder: Path) -> tuple[str, str]:
    """Return a section with the text of the file that its head names, if it names one."""
    ordered = IN_THIS_ORDER if head.endswith(IN_THIS_ORDER) else ""
    match = re.fullmatch(r"(query|file|stream)(.*?) from (\S+)", head.removesuffix(ordered))
    if match is None:
        return head, body
    kind, name, path = match.groups()
    if body.strip():
        raise CaseError(f"the section `--- {head}` has a text of its own", "leave out one of them")
    try:
        text = (folder / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise CaseError(f"{folder / path} cannot be read: {reason}", "check the path") from None
    return f"{kind}{name}{ordered}", text.strip("\n")


def _prefixes(queries: Iterable[str]) -> dict[str, str]:
    """Return the prefixes of queries; a query that does not parse has none."""
    prefixes = dict(USUAL_PREFIXES)
    for text in queries:
        try:
            prefixes |= parse(text).prefixes
        except QuerySyntaxError:
            continue
    return prefixes


def _stream(head: str, text: str, prefixes: Mapping[str, str]) -> CaseStream:
    lines = tuple(_element(line, prefixes) for line in text.splitlines() if line.strip())
    return CaseStream(head.removesuffix(IN_THIS_ORDER), lines, head.endswith(IN_THIS_ORDER))


def _element(line: str, prefixes: Mapping[str, str]) -> str:
    if line.startswith("{"):
        return line
    [(time, turtle)] = element_lines(line)
    return json.dumps({"timestamp": time, "graph": with_declarations(turtle, prefixes)})


def _expected(sections: Sections) -> CaseOutcome:
    lines = {head: tuple(text.splitlines()) for head, text in sections}
    code, error = next(named(sections, "error"), ("0", None))
    if not code.isdecimal():
        raise CaseError(f"`--- error {code}` has no exit code", "write `--- error 2`, for instance")
    return CaseOutcome(
        by_query(lines.get("answers", ())),
        lines.get("dead letters", ()),
        int(code),
        None if error is None else tuple(error.splitlines()),
    )


def by_query(answers: Sequence[str]) -> tuple[str, ...]:
    """Return answers as lines of JSON in the order of their queries; other lines as they are."""
    try:
        return tuple(sorted(answers, key=lambda line: str(json.loads(line)["query"])))
    except (ValueError, LookupError, TypeError):
        return tuple(answers)


def differences(case: Case, found: CaseOutcome) -> str:
    """Return how a run differs from what a case expects, line by line; nothing if it does not."""
    expected = case.expected
    exit_code = difference("exit code", [str(expected.exit_code)], [str(found.exit_code)])
    minds_errors = expected.error is not None or exit_code
    texts = [
        exit_code,
        difference("standard error", expected.error or (), found.error or ())
        if minds_errors
        else "",
        _answers(case, found),
        _drawing(case, found),
        difference("dead letters", *_dead_letters(expected, found)),
    ]
    return "\n".join(filter(None, texts))


def _dead_letters(expected: CaseOutcome, found: CaseOutcome) -> tuple[Lines, Lines]:
    """Return both as lines of JSON, or as reasons where the case has these."""
    if any(line.startswith("{") for line in expected.dead_letters):
        return expected.dead_letters, found.dead_letters
    reasons = (json.loads(line)["reason"] for line in found.dead_letters)
    kinds = ((reason, reason.partition(":")[0]) for reason in reasons)
    known = expected.dead_letters
    return known, tuple(kind if kind in known else reason for reason, kind in kinds)


def _answers(case: Case, found: CaseOutcome) -> str:
    if case.table is None:
        return difference("answers", case.expected.answers, found.answers)
    try:
        records = [json.loads(line) for line in found.answers]
    except ValueError:
        raise CaseError("a table needs answers in jsonl", "leave out --format") from None
    return AnswerTable(case.table, case.prefixes).compare(records)


def _drawing(case: Case, found: CaseOutcome) -> str:
    """Return the windows that the case does not draw; answers in another format do not tell."""
    if case.drawing is None:
        return ""
    try:
        return case.drawing.compare([json.loads(line) for line in found.answers])
    except (ValueError, LookupError, TypeError):
        return ""


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
