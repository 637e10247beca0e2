"""`rsp test`: case files, each a run of its own with what is expected of it."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections import Counter
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.cli.app import app as rsp
from rsp_engine.cli.app import command_app, exit_on_error
from rsp_engine.testing.case_file import CaseOutcome, by_query, case_files, differences, load_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.testing.case_file import Case

__all__ = ["run_case"]

EXIT_DIFFERENT = 1
DEAD_LETTERS = "dead.jsonl"

app = command_app()


class Runner(StrEnum):
    """Where a case runs."""

    local = "local"
    spark = "spark"


@app.command("test")
def run_cases(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Case files, or folders with files named *.case."),
    ],
    runner: Annotated[
        Runner, typer.Option(help="Where cases run; a case with --runner says so itself.")
    ] = Runner.local,
) -> None:
    """Run the cases of files, and compare what they give with what they expect.

    Exit 0 if all are as expected, 1 if one is not, 2 if one cannot be read.
    """
    with exit_on_error():
        cases = [(path, load_case(path)) for path in case_files(files)]
    failed = 0
    for path, case in cases:
        with tempfile.TemporaryDirectory(prefix="rsp-") as folder, exit_on_error():
            flags = (f"--runner={runner}", *case.flags)
            text = differences(case, run_case(replace(case, flags=flags), Path(folder)))
        failed += bool(text)
        typer.echo(f"{path}: different\n{text}" if text else f"{path}: ok")
    noun = "case" if len(cases) == 1 else "cases"
    typer.echo(f"{len(cases)} {noun}, {failed} different" if failed else f"{len(cases)} {noun}, ok")
    if failed:
        raise typer.Exit(EXIT_DIFFERENT)


def run_case(case: Case, folder: Path, *flags: str) -> CaseOutcome:
    """Run a case from within a folder, so that only bare names of files are shown."""
    from typer.testing import CliRunner

    for name, text in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    bound = [f"--stream={iri}={name}" for iri, name in _written(case, folder)]
    arguments = ["run", *case.queries, *bound, *case.flags, *flags]
    arguments.append(f"--dead-letters={DEAD_LETTERS}")
    with contextlib.chdir(folder):
        result = CliRunner().invoke(rsp, arguments, catch_exceptions=False)
    letters = folder / DEAD_LETTERS
    return CaseOutcome(
        by_query(result.stdout.splitlines()),
        tuple(letters.read_text(encoding="utf-8").splitlines()) if letters.exists() else (),
        result.exit_code,
        tuple(result.stderr.splitlines()),
    )


def _written(case: Case, folder: Path) -> Iterator[tuple[str, str]]:
    """Write the files of the streams, `s.jsonl`, `s-2.jsonl` and so on, and yield their names."""
    files: Counter[str] = Counter()
    for stream in case.streams:
        files[stream.iri] += 1
        number = f"-{files[stream.iri]}" if files[stream.iri] > 1 else ""
        name = f"{_name(stream.iri)}{number}.jsonl"
        (folder / name).write_text("".join(f"{line}\n" for line in stream.lines), encoding="utf-8")
        yield stream.iri, name


def _name(iri: str) -> str:
    """Return a name for the file of a stream.

    >>> _name("http://example.org/s"), _name("http://example.org/streams?x=1#rooms")
    ('s', 'rooms')
    """
    return re.sub(r"[^\w.-]", "-", re.split(r"[/#:]", iri)[-1]) or "stream"
