"""`rsp experiment`: running suites of experiments, and reporting on them."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rsp_engine.cli.app import EXIT_FAILURE, exit_on_error
from rsp_engine.model.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rsp_engine.experiments.datasets.own import OwnTables
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

Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Use recorded traces: the folder of mentions_evening.csv and followers_evening.csv.",
    ),
]
Mentions = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Your own mentions, as CSV or Parquet; see --history."),
]
History = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The values of your keys over time, as CSV or Parquet."),
]
MentionColumns = Annotated[str, typer.Option(metavar="TIME,KEY", help="The columns of --mentions.")]
HistoryColumns = Annotated[
    str, typer.Option(metavar="TIME,KEY,VALUE", help="The columns of --history.")
]
Window = Annotated[
    str, typer.Option("--range", metavar="DURATION", help="How long a window of own data is.")
]
Step = Annotated[str, typer.Option(metavar="DURATION", help="How far a window of own data slides.")]
Differences = Annotated[
    bool,
    typer.Option("--differences", help="Rank by the change of a value since the row before."),
]
Replay = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Use a recorded run, as the authors' replay_ch20.csv."),
]
Seed = Annotated[int | None, typer.Option(help="The seed, instead of the suite's.")]
Workers = Annotated[
    int | None, typer.Option(help="How many processes; by default one per processor.")
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
    data: Data = None,
    mentions: Mentions = None,
    history: History = None,
    mention_columns: MentionColumns = "time,key",
    history_columns: HistoryColumns = "time,key,value",
    window: Window = "100s",
    step: Step = "60s",
    differences: Differences = False,
    replay: Replay = None,
    seed: Seed = None,
    workers: Workers = None,
) -> None:
    """Run suites, each into a folder of its own.

    Results that exist are not computed again: a suite that was stopped resumes, and a finished one
    stays as it is.

    Example: rsp experiment run preliminary experiment-1 --quick
    """
    with exit_on_error():
        data_flags = _DataFlags(
            data,
            mentions,
            history,
            mention_columns,
            history_columns,
            window,
            step,
            differences,
            replay,
        )
        for path in _run(suites, results, data_flags, seed, workers, quick=quick):
            typer.echo(path)


@app.command("trials")
def compare_policies(
    suites: Annotated[
        list[str] | None,
        typer.Argument(metavar="SUITE", help="A suite with comparisons; by default fair-trials."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Run the whole suite, not its quick settings.")
    ] = False,
    results: Results = _RESULTS,
    data: Data = None,
    mentions: Mentions = None,
    history: History = None,
    mention_columns: MentionColumns = "time,key",
    history_columns: HistoryColumns = "time,key,value",
    window: Window = "100s",
    step: Step = "60s",
    differences: Differences = False,
    replay: Replay = None,
    seed: Seed = None,
    workers: Workers = None,
    table: Annotated[
        str, typer.Option(metavar="FORMAT", help="markdown, csv or latex.")
    ] = "markdown",
    cells: Annotated[
        bool, typer.Option("--cells", help="Print every cell, in place of the summary.")
    ] = False,
) -> None:
    """Run suites as `run` does, and print which policy is better, cell by cell.

    All policies of a cell see the same windows, ties, N, signal and first snapshot. A cell is won,
    tied or lost by the interval of the paired difference to the baseline that is best on the other
    datasets.

    Example: rsp experiment trials --full --seed 5
    """
    from rsp_engine.experiments.report.measured import measured
    from rsp_engine.experiments.results import read_result_folder
    from rsp_engine.experiments.trials.tables import table_writer, trial_tables

    with exit_on_error():
        write = table_writer(table)
        names = suites or ["fair-trials"]
        data_flags = _DataFlags(
            data,
            mentions,
            history,
            mention_columns,
            history_columns,
            window,
            step,
            differences,
            replay,
        )
        paths = _run(names, results, data_flags, seed, workers, quick=not full)
        folders = [read_result_folder(path) for path in paths]
        found = [(folder.comparisons, measured(folder)) for folder in folders]
        typer.echo("\n".join(map(write, trial_tables(found, has_cells=cells))), nl=False)


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
            metavar="FOLDER",
            help="Write the figures as SVG, PNG and PDF too (needs the extra plots).",
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


def _run(
    names: Sequence[str],
    results: Path,
    data: _DataFlags,
    seed: int | None,
    workers: int | None,
    *,
    quick: bool,
) -> Iterator[Path]:
    """Run suites, and yield the result folder of each; read all of them before the first runs."""
    from rsp_engine.experiments.bundled_suites import find_suite
    from rsp_engine.experiments.process_pool import in_turn, over_processes
    from rsp_engine.experiments.results import run_suite
    from rsp_engine.experiments.suite import read_suite

    chosen = [_with_flags(read_suite(find_suite(name), quick=quick), data, seed) for name in names]
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
        yield path


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


class _DataFlags(NamedTuple):
    """The flags that replace the data of a suite."""

    folder: Path | None
    mentions: Path | None
    history: Path | None
    mention_columns: str
    history_columns: str
    window: str
    step: str
    differences: bool
    replay: Path | None


def _with_flags(suite: Suite, flags: _DataFlags, seed: int | None) -> Suite:
    """Return a suite with the data and the seed of the flags."""
    from rsp_engine.errors import SuiteError
    from rsp_engine.experiments.datasets.own import read_own
    from rsp_engine.experiments.datasets.recording import read_recording
    from rsp_engine.experiments.suite import Data, with_files

    if seed is not None:
        if not 0 <= seed < 2**31:
            raise SuiteError(f"--seed must be a whole number from 0 on, not {seed}")
        suite = replace(suite, data=replace(suite.data, seed=seed))
    if sum(one is not None for one in (flags.folder, flags.replay, _own(flags))) > 1:
        raise SuiteError("--data, --replay and --mentions name different data", "choose one")
    if flags.folder is not None:
        data = replace(suite.data, source="recorded", folder=str(flags.folder), mentions="shared")
        return replace(suite, data=data)
    counting = suite.data.counting
    if flags.replay is not None:
        windows = len(read_recording(flags.replay).windows)
        data = Data("replay", counting=counting, replay=str(flags.replay))
        return with_files(suite, data, windows)
    if (own := _own(flags)) is not None:
        windows = len(read_own(own).windows)
        if not windows:
            raise SuiteError(f"{own.mentions} and {own.history} do not fill a window of --range")
        return with_files(suite, Data("own", counting=counting, own=own), windows)
    return suite


def _own(flags: _DataFlags) -> OwnTables | None:
    """Return the tables that the flags name, if they do."""
    from rsp_engine.errors import SuiteError
    from rsp_engine.experiments.datasets.own import OwnTables
    from rsp_engine.model.option import milliseconds

    if flags.mentions is None and flags.history is None:
        return None
    if flags.mentions is None or flags.history is None:
        raise SuiteError("own data are two files", "give both --mentions and --history")
    mention_columns = tuple(flags.mention_columns.split(","))
    history_columns = tuple(flags.history_columns.split(","))
    if len(mention_columns) != 2:
        raise SuiteError("--mention-columns must name two columns", "TIME,KEY")
    if len(history_columns) != 3:
        raise SuiteError("--history-columns must name three columns", "TIME,KEY,VALUE")

    def duration(name: str, text: str) -> int:
        try:
            return milliseconds(text)
        except ValueError as reason:
            raise SuiteError(f"{name} {text}: {reason}") from None

    range_, step = duration("--range", flags.window), duration("--step", flags.step)
    if step > range_:
        raise SuiteError(f"--step {flags.step} is longer than --range {flags.window}")
    return OwnTables(
        str(flags.mentions),
        str(flags.history),
        (mention_columns[0], mention_columns[1]),
        (history_columns[0], history_columns[1], history_columns[2]),
        range_,
        step,
        flags.differences,
    )


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
