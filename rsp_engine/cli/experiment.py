"""`rsp experiment`: running suites of experiments, and reporting on them."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.cli.app import EXIT_FAILURE, exit_on_error
from rsp_engine.model.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.experiments.suite import Suite

__all__ = []

app = typer.Typer(
    name="experiment",
    help="Compare refresh policies: run suites of experiments, and report on them.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_RESULTS = Path("results")
Results = Annotated[
    Path, typer.Option(metavar="FOLDER", help="The folder with the results, a folder per suite.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Use the quick settings of the suite: fewer runs.")
]


@app.command("list")
def list_suites() -> None:
    """List the suites that can be run by name, with the number of their runs."""
    from rsp_engine.experiments.bundled_suites import known_suites
    from rsp_engine.experiments.suite import read_suite

    with exit_on_error():
        suites = [(read_suite(path), read_suite(path, quick=True)) for path in known_suites()]
        width = max((len(suite.name) for suite, _ in suites), default=0)
        for suite, quick in suites:
            runs = f"{quantity(suite.runs, 'run')}, {quick.runs} with --quick"
            typer.echo(f"{suite.name:{width}}  {suite.title} ({runs})")


@app.command("run")
def run_suites(
    suites: Annotated[
        list[str], typer.Argument(metavar="SUITE", help="A name that `list` shows, or a TOML file.")
    ],
    quick: Quick = False,
    results: Results = _RESULTS,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Use recorded traces: the folder of mentions_evening.csv and"
            " followers_evening.csv.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The seed, instead of the suite's.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="How many processes; by default one per processor.")
    ] = None,
) -> None:
    """Run suites, each into a folder of its own.

    Results that exist are not computed again: a suite that was stopped resumes, and a finished one
    stays as it is.

    Example: rsp experiment run preliminary experiment-1 --quick
    """
    from rsp_engine.experiments.bundled_suites import find_suite
    from rsp_engine.experiments.process_pool import in_turn, over_processes
    from rsp_engine.experiments.results import run_suite
    from rsp_engine.experiments.suite import read_suite

    with exit_on_error():
        chosen = [
            _with_flags(read_suite(find_suite(name), quick=quick), data, seed) for name in suites
        ]
        count = _workers(workers)
        spread = in_turn if count == 1 else over_processes(count)
        for suite in chosen:
            path = None
            with _progress_bar(suite.name) as show, suppress(KeyboardInterrupt):
                path = run_suite(suite, results, spread, show)
            if path is None:
                again = "finished runs are kept, and the same command resumes"
                typer.echo(f"{suite.name} was stopped; {again}", err=True)
                raise typer.Exit(EXIT_FAILURE)
            typer.echo(path)


@app.command("report")
def report_on(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="RESULTS", help="Result folders by name; all by default."),
    ] = None,
    results: Results = _RESULTS,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The report; by default report.html in the results."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the figures as SVG and PNG too (needs the extra plots)."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The recorded traces, and the authors' own run to replay; by default acquatop in"
            " the folder RSP_DATA.",
        ),
    ] = None,
) -> None:
    """Write a self-contained HTML report with figures, tables and verdicts.

    A folder that is not finished is refused; name the finished ones to report on them alone.
    """
    from rsp_engine.experiments.report.plots import can_draw
    from rsp_engine.experiments.report.written import found_results, page_content, write_report
    from rsp_engine.model.extras import install_command

    with exit_on_error():
        report = page_content(found_results(results, names or ()), _data(data))
        path = output or results / "report.html"
        write_report(report, path, figures)
        if not can_draw():
            command = install_command("plots")
            typer.echo(f"the report has no figures; to draw them: {command}", err=True)
        typer.echo(path)


@contextmanager
def _progress_bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error; yield a function that sets the tasks done and their number."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
    with bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _with_flags(suite: Suite, data: Path | None, seed: int | None) -> Suite:
    """Return a suite with the data and the seed of the flags."""
    from rsp_engine.errors import SuiteError

    settings = suite.data
    if data is not None:
        settings = replace(settings, source="recorded", folder=str(data))
    if seed is not None:
        if not 0 <= seed < 2**31:
            raise SuiteError(f"--seed must be a whole number from 0 on, not {seed}")
        settings = replace(settings, seed=seed)
    return replace(suite, data=settings)


def _workers(count: int | None) -> int:
    from rsp_engine.errors import SuiteError

    if count is not None and count < 1:
        raise SuiteError(f"--workers must be at least 1, not {count}")
    return count or os.cpu_count() or 1


def _data(folder: Path | None) -> Path | None:
    """Return the folder of recorded data, if there is one."""
    from rsp_engine.errors import SourceError

    if folder is not None:
        if not folder.is_dir():
            raise SourceError(f"--data: the folder {folder} is not there")
        return folder
    root = os.environ.get("RSP_DATA")
    path = Path(root) / "acquatop" if root else None
    return path if path is not None and path.is_dir() else None
