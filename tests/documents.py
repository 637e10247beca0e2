"""How documents are read and followed: block by block, as a reader would who types everything in.

A document is followed in a folder that looks like the project and can be written to. The language
of a fenced block says what is done with it:

    sh       it is run, and must end well; a block that ends well though a command fails says so
             itself: `rsp ... || echo "exit code $?"`
    python   it is run; the blocks of a document share their names
    pycon    it is run, with the names of the package, and prints what it shows
    sparql   it must be a valid query, without warnings
    turtle, json, jsonl, csv, toml
             it must be well-formed
    ini, yaml, dockerfile
             a test of its own reads it
    text     it is a drawing
    (none)   it is what the last block that was run has printed; `...` stands for anything

A paragraph before a block that says "Save this as `name`" puts it into that file. One that says "no
test runs it" is believed, but the commands must still be ones that `rsp` knows.
"""

from __future__ import annotations

import csv
import doctest
import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import tomllib
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyoxigraph as ox
import typer

import rsp_engine
from rsp_engine.cli import app
from rsp_engine.grammar import validate
from rsp_engine.testing import StreamTest
from tests.data import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DOCUMENTS",
    "Block",
    "Reader",
    "blocks",
    "commands",
    "flags",
    "matches",
    "page",
    "tables",
]

DOCUMENTS = [
    PROJECT / "README.md",
    PROJECT / "examples" / "README.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
]
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = "no test runs it"
_SERVER = "localhost:7878"
"""Where a server is to be found in documents. Here it gets a port of its own."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, where it begins, and the paragraph before it."""

    document: Path
    line: int
    language: str
    text: str
    before: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(PROJECT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that a reader is told to save it as."""
        found = re.search(r"[Ss]ave this as\s+`([^`]+)`", self.before)
        return found and found[1]

    @property
    def is_not_run(self) -> bool:
        """Whether the document says that nobody tries it."""
        return _NOT_RUN in " ".join(self.before.split())


def page(name: str) -> Path:
    """Return the page of the documents with this file name, whatever kind it is of."""
    [found] = (PROJECT / "docs").rglob(name)
    return found


def blocks(document: Path) -> list[Block]:
    """Return the fenced blocks of a document."""
    text = document.read_text(encoding="utf-8")
    assert text.count("\n```") % 2 == 0, f"{document}: a block is not closed"
    found = []
    for match in _BLOCK.finditer(text):
        before = text[: match.start()].rstrip().rsplit("\n\n", 1)[-1]
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(document, line, match[1], match[2], before))
    return found


class Table(NamedTuple):
    """A table: the heading it stands under, the name of its first column, and its rows."""

    heading: str
    first: str
    rows: list[list[str]]


def tables(document: Path) -> Iterator[Table]:
    """Yield the tables of a document."""
    heading, rows = "", list[list[str]]()
    for line in [*document.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            rows.append([cell.strip().replace("\\|", "|") for cell in cells])
        elif rows:
            yield Table(heading, rows[0][0], rows[2:])
            rows = []


def commands() -> dict[str, Any]:
    """Return the commands of `rsp`, those within others by both their words."""
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", typer.main.get_command(app))]
    while waiting:
        name, command = waiting.pop()
        found[name] = command
        for word, inner in getattr(command, "commands", {}).items():
            waiting.append((f"{name} {word}".strip(), inner))
    return found


def flags() -> set[str]:
    """Return every flag of `rsp`."""
    parameters = (p for command in commands().values() for p in command.params)
    return {flag for p in parameters for flag in p.opts + p.secondary_opts if flag[0] == "-"}


def matches(shown: str, printed: str) -> bool:
    """Tell whether a text is what a document shows, with `...` for anything.

    On a line by itself it stands for any lines.
    """
    lines = [re.escape(line.rstrip()) for line in shown.rstrip().splitlines()]
    dots = re.escape("...")
    pattern = "".join(
        r"(?:.*\n)*?" if line == dots else line.replace(dots, ".*?") + r"[ \t]*\n" for line in lines
    )
    return re.fullmatch(pattern, printed.rstrip() + "\n") is not None


@dataclass
class Reader:
    """Somebody who follows a document in a folder of their own."""

    folder: Path
    environment: dict[str, str]
    printed: str | None = None
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    _port: int = 0
    _started: list[int] = field(default_factory=list)

    @classmethod
    @contextmanager
    def at_work(cls, folder: Path, **environment: str | None) -> Iterator[Reader]:
        """Prepare a folder, and end at last what was started there."""
        for entry in PROJECT.iterdir():
            if entry.name not in {".venv", ".git", "results", "__pycache__"}:
                (folder / entry.name).symlink_to(entry)
        _install(folder / ".venv" / "bin")
        path = f"{folder / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        known = {**os.environ, "PATH": path, "PYTHONPATH": str(PROJECT), **environment}
        reader = cls(folder, {name: v for name, v in known.items() if v is not None})
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            reader._port = probe.getsockname()[1]
        try:
            yield reader
        finally:
            for group in reader._started:
                try:
                    os.killpg(group, signal.SIGTERM)
                except ProcessLookupError:
                    continue

    def follow(self, block: Block) -> None:
        """Do what a block asks for, and see that it comes out as the document says."""
        text = block.text.replace(_SERVER, f"localhost:{self._port}")
        text = text.replace(f"--port {_SERVER[-4:]}", f"--port {self._port}")
        if block.file is not None:
            (self.folder / block.file).write_text(text, encoding="utf-8")
        if block.is_not_run:
            _check_commands(block)
            return
        match block.language:
            case "sh":
                self._run(block, text)
            case "python":
                self._execute(block, text)
            case "pycon":
                _check_session(block)
            case "":
                assert self.printed is not None, f"{block}: nothing was run that could print this"
                assert matches(block.text, self.printed), (
                    f"{block}: the document shows\n\n{block.text}\nand this is printed:\n\n"
                    f"{self.printed}"
                )
            case "sparql":
                found = validate(block.text)
                assert not found.errors, f"{block}: {found.errors}"
                assert not found.warnings, f"{block}: {found.warnings}"
            case _:
                _check_form(block)

    def _run(self, block: Block, text: str) -> None:
        # A file of its own: a server that an earlier block started may still print into that one.
        output = self.folder / f".printed-{block.line}"
        with output.open("wb") as stream:
            process = subprocess.Popen(  # noqa: S603 - what our own documents say
                ["/bin/sh", "-e", "-c", text],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._started.append(process.pid)
            code = process.wait(timeout=180)
        printed = output.read_text(encoding="utf-8")
        assert code == 0, f"{block}: it ends with {code}\n{printed}"
        if re.search(r"&$", text, re.MULTILINE):
            self._wait_for_server()
        self.printed = printed.replace(f"localhost:{self._port}", _SERVER)

    def _wait_for_server(self) -> None:
        for _ in range(600):
            try:
                socket.create_connection(("localhost", self._port), timeout=5).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the server of the document does not answer")

    def _execute(self, block: Block, text: str) -> None:
        # As many empty lines before it as the document has, so that an error tells its place.
        code = compile("\n" * block.line + text, str(block.document), "exec")
        before, told = Path.cwd(), io.StringIO()
        os.chdir(self.folder)
        try:
            with redirect_stdout(told):
                exec(code, self.names)  # noqa: S102 - it is our own
        finally:
            os.chdir(before)
        self.printed = told.getvalue().replace(f"localhost:{self._port}", _SERVER)


def _install(folder: Path) -> None:
    """Make the commands that `make setup` would have made."""
    folder.mkdir(parents=True)
    python, bin_ = shlex.quote(sys.executable), shlex.quote(sysconfig.get_path("scripts"))
    scripts = {
        "rsp": f'exec {python} -m rsp_engine.cli "$@"',
        "python": f'exec {python} "$@"',
        "python3": f'exec {python} "$@"',
        "oxigraph": f'exec {bin_}/oxigraph "$@"',
        "spark-submit": f'exec {bin_}/spark-submit "$@"',
        # Words of make install, and run what other tests run: here they must exist.
        "make": 'for word; do grep -q "^$word:" Makefile || exit 1; done',
    }
    for name, text in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / "activate").write_text("")


def _check_session(block: Block) -> None:
    names: dict[str, Any] = {name: getattr(rsp_engine, name) for name in rsp_engine.__all__}
    names["StreamTest"] = StreamTest
    test = doctest.DocTestParser().get_doctest(block.text, names, str(block), None, block.line)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    assert not told, "".join(told)


def _check_form(block: Block) -> None:
    match block.language:
        case "turtle":
            assert list(ox.parse(block.text, format=ox.RdfFormat.TURTLE)), str(block)
        case "json":
            json.loads(block.text)
        case "jsonl":
            assert [json.loads(line) for line in block.text.splitlines()], str(block)
        case "csv":
            widths = {len(row) for row in csv.reader(block.text.splitlines())}
            assert len(widths) == 1, f"{block}: its rows are not of one length"
        case "toml":
            tomllib.loads(block.text)
        case "text" | "ini" | "yaml" | "dockerfile":
            pass
        case _:
            raise AssertionError(f"{block}: nobody knows what to do with {block.language}")


def _check_commands(block: Block) -> None:
    """See that commands which are not run could be: that `rsp` knows all their flags."""
    lines = block.text.replace("\\\n", " ").splitlines()
    found = [words for line in lines if (words := shlex.split(line)) and words[0] == "rsp"]
    assert found, f"{block}: only commands of rsp may be left out"
    known = commands()
    for _, word, *rest in found:
        with known[word].make_context(word, rest):
            pass
