"""`rsp experiment`: suites of experiments, run and reported."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.cli.app import WORLDS_FAULT, app, exit_on_error
from rsp_engine.cli.progress import progress

if TYPE_CHECKING:
    from rsp_engine.experiments.suite import Suite

__all__ = ["experiment"]

experiment = typer.Typer(
    name="experiment",
    help="Compare refresh policies: run suites of experiments, and report on them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(experiment)

_RESULTS = Path("results")
Results = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Where the result folders are, one for each suite.")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Take what the suite says for a quick look: fewer runs.")
]


@experiment.command("list")
def list_suites() -> None:
    """List the suites that can be run by name, with the number of their runs."""
    from rsp_engine.experiments.bundled_suites import known_suites
    from rsp_engine.experiments.suite import read_suite

    with exit_on_error():
        for path in known_suites():
            suite = read_suite(path)
            quick = read_suite(path, quick=True)
            runs = f"{suite.runs} runs, {quick.runs} with --quick"
            typer.echo(f"{suite.name:16}{suite.title} ({runs})")


@experiment.command("run")
def run_suites(
    suites: Annotated[
        list[str], typer.Argument(metavar="SUITE", help="A name of `list`, or a TOML file.")
    ],
    quick: Quick = False,
    results: Results = _RESULTS,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Take recorded traces: the folder of mentions_evening.csv and"
            " followers_evening.csv.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed than the suite's.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="How many processes; as many as there are processors.")
    ] = None,
) -> None:
    """Run suites, each into a folder of its own.

    What is there already is not run again: a run that was stopped goes on where it was, and one
    that is finished stays as it is.

    Example: rsp experiment run preliminary experiment-1 --quick
    """
    from rsp_engine.experiments.bundled_suites import find_suite
    from rsp_engine.experiments.process_pool import in_turn, over_processes
    from rsp_engine.experiments.results import run_suite
    from rsp_engine.experiments.suite import read_suite

    with exit_on_error():
        chosen = [
            _changed(read_suite(find_suite(name), quick=quick), data, seed) for name in suites
        ]
        count = _workers(workers)
        spread = in_turn if count == 1 else over_processes(count)
        for suite in chosen:
            path = None
            with progress(suite.name) as told, suppress(KeyboardInterrupt):
                path = run_suite(suite, results, spread, told)
            if path is None:
                again = "what is done is kept, and the same command goes on with it"
                typer.echo(f"{suite.name} was stopped; {again}", err=True)
                raise typer.Exit(WORLDS_FAULT)
            typer.echo(path)


@experiment.command("report")
def report_on(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="RESULTS", help="Result folders by name; all if left out."),
    ] = None,
    results: Results = _RESULTS,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The report; report.html in the results if left out."),
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
            help="The recorded traces, and the authors' own run to replay; acquatop in the folder"
            " RSP_DATA if left out.",
        ),
    ] = None,
) -> None:
    """Write one HTML file with figures, tables and verdicts, to be read anywhere.

    A folder that is not finished is refused; name those that are to report on them alone.
    """
    from rsp_engine.experiments.report.written import found_results, report_progress, write_report

    with exit_on_error():
        told = report_progress(found_results(results, names or ()), _data(data))
        path = output or results / "report.html"
        write_report(told, path, figures)
        typer.echo(path)


def _changed(suite: Suite, data: Path | None, seed: int | None) -> Suite:
    """Return a suite with what the flags say in place of its own."""
    from rsp_engine.errors import SuiteError

    made = suite.data
    if data is not None:
        made = replace(made, source="recorded", folder=str(data))
    if seed is not None:
        if not 0 <= seed < 2**31:
            raise SuiteError(f"--seed must be a whole number from 0 on, not {seed}")
        made = replace(made, seed=seed)
    return replace(suite, data=made)


def _workers(asked: int | None) -> int:
    from rsp_engine.errors import SuiteError

    if asked is not None and asked < 1:
        raise SuiteError(f"--workers must be at least 1, not {asked}")
    return asked or os.cpu_count() or 1


def _data(asked: Path | None) -> Path | None:
    """Return the folder of recorded data, if there is one."""
    from rsp_engine.errors import SourceError

    if asked is not None:
        if not asked.is_dir():
            raise SourceError(f"--data: the folder {asked} is not there")
        return asked
    known = os.environ.get("RSP_DATA")
    path = Path(known) / "acquatop" if known else None
    return path if path is not None and path.is_dir() else None
