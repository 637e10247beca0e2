"""The comparison with other programs: one table in Markdown, with ratios of CPU seconds.

    python -m benchmarks.peers [--peers duckdb bytewax] [--cases a b] [--runs 3] [--size 0.1]

The programs of a case take turns. Figures are medians of the runs, of all processes that a program
starts, from its start to its end: the start of Python or Java is included. A program that cannot be
installed or run is left out, with the reason below the table. Bars are those of the whole streams.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.markdown import print_head, print_row, ratio
from benchmarks.peers.answers import agreement, read_answers, read_our_answers
from benchmarks.peers.cases import CASES
from benchmarks.peers.environment import PACKAGE, PEERS, UnavailableError, last_message
from benchmarks.peers.streams import EX, VALUE, write_stream
from benchmarks.peers.task import Task
from benchmarks.peers.usage import Usage, adopt_orphans, measure

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from benchmarks.peers.answers import Answers
    from benchmarks.peers.cases import Bar, Case, Run
    from benchmarks.peers.streams import Stream

PROJECT = PACKAGE.parents[1]
STREAMS = PACKAGE / ".streams"
HEAD = "case, program, CPU s, relative, us per triple, peak MB, bar, answers".split(", ")


@dataclass(slots=True)
class Measured:
    """What a run used in each turn, and what it answered."""

    run: Run
    triples: int
    answers: Answers
    usages: list[Usage] = field(default_factory=list)

    @property
    def cpu_s(self) -> float:
        """The median of the CPU seconds."""
        return median(usage.cpu_s for usage in self.usages)

    @property
    def us(self) -> float:
        """The CPU time of a triple, in microseconds."""
        return self.cpu_s / self.triples * 1e6

    @property
    def peak_mb(self) -> float:
        """The median of the peak memory."""
        return median(usage.peak_mb for usage in self.usages)


class Comparison:
    """Runs of programs in a folder, and the reasons why some could not run."""

    def __init__(self, folder: Path, share: float, turns: int) -> None:
        self._folder, self._share, self._turns = folder, share, turns
        self.unavailable: dict[str, str] = {}

    def compare(self, case: Case, peers: Collection[str]) -> None:
        """Run the programs of a case in turns, and print their rows."""
        measured: dict[Run, Measured] = {}
        for _ in range(self._turns):
            for run in case.runs:
                if run.peer not in self.unavailable and run.peer in ("rsp", *peers):
                    self._take_turn(run, measured)
        base, *_ = measured.values()
        for each in measured.values():
            bar = each.run.bar if self._share == 1 else None
            print_row(cells(case, each, base, own_answers(each.run, measured), bar))

    def _take_turn(self, run: Run, measured: dict[Run, Measured]) -> None:
        try:
            less = self._measure(run, run.beyond).cpu_s if run.beyond else 0.0
            usage = self._measure(run, run.stream)  # the last, since its answers are read
            usage = usage._replace(cpu_s=usage.cpu_s - less)
        except UnavailableError as error:
            self.unavailable[run.peer] = str(error)
            return
        if run not in measured:
            triples = self._reduced(run.stream).triples
            triples -= self._reduced(run.beyond).triples if run.beyond else 0
            measured[run] = Measured(run, triples, self._answers(run))
        measured[run].usages.append(usage)

    def _measure(self, run: Run, stream: Stream) -> Usage:
        log = self._folder / "log"
        command = self._command(run, self._path(stream))
        self._output.unlink(missing_ok=True)
        try:
            return measure(command, PROJECT, log)
        except subprocess.CalledProcessError as error:
            text = log.read_text(errors="replace")
            if run.peer == "rsp":
                raise SystemExit(text) from error
            raise UnavailableError(last_message(text)) from error

    def _command(self, run: Run, stream: Path) -> list[str]:
        query = run.query
        if run.peer != "rsp":
            task = Task(
                kind=query.kind,
                query=query.sparql(),
                stream=str(stream),
                output=str(self._output),
                predicate=VALUE,
                range_s=query.range_s,
                step_s=query.step_s,
                limit=query.limit or 0,
                below=query.below,
                variant=run.variant,
            )
            PEERS[run.peer].install()
            return PEERS[run.peer].command(task)
        paths = []
        for number, each in enumerate((query, *run.more)):
            paths.append(self._folder / f"{number}.rspql")
            paths[-1].write_text(each.rspql(f"q{number}"))
        command = [sys.executable, "-m", "rsp_engine.cli", "run", *map(str, paths)]
        command += ["--runner", "local", "--stream", f"{EX}stream={stream}"]
        if run.has_checkpoint:
            shutil.rmtree(self._folder / "checkpoint", ignore_errors=True)
            command += ["--checkpoint", str(self._folder / "checkpoint")]
        return [*command, "--output", str(self._output)]

    def _answers(self, run: Run) -> Answers:
        if run.peer == "rsp":
            return read_our_answers(self._output, f"{EX}q0", run.query.variables)
        return read_answers(self._output)

    def _path(self, stream: Stream) -> Path:
        return write_stream(self._reduced(stream), STREAMS)

    def _reduced(self, stream: Stream) -> Stream:
        return stream if self._share == 1 else stream.reduced(self._share)

    @property
    def _output(self) -> Path:
        return self._folder / "answers.jsonl"


def own_answers(run: Run, measured: Mapping[Run, Measured]) -> Measured | None:
    """Return our first run of the same query over the same stream."""
    same = [each for each in measured.values() if each.run.peer == "rsp"]
    return next(
        (each for each in same if (each.run.query, each.run.stream) == (run.query, run.stream)),
        None,
    )


def cells(
    case: Case, each: Measured, base: Measured, ours: Measured | None, bar: Bar | None
) -> list[str]:
    """Return a row of the table."""
    run = each.run
    title = PEERS[run.peer].title if run.peer in PEERS else run.peer
    program = f"{title}, {run.variant}" if run.variant else title
    figures = {"x": each.us / base.us, "us": each.us, "MB": each.peak_mb}
    verdict = "" if bar is None or bar.holds(figures[bar.figure]) else " MISSED"
    answers = "" if ours in (None, each) else agreement(ours.answers, each.answers, run.query.limit)
    return [
        f"({case.letter}) {case.title}" if each is base else "",
        program,
        f"{each.cpu_s:.1f}",
        ratio(figures["x"]),
        f"{each.us:.2f}",
        f"{each.peak_mb:,.0f}",
        f"{bar or ''}{verdict}",
        answers,
    ]


def main() -> None:
    """Print the table."""
    flags = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    flags.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    letters = sorted({case.letter for case in CASES})
    flags.add_argument("--cases", nargs="*", choices=letters, default=letters)
    flags.add_argument("--runs", type=int, default=3)
    flags.add_argument(
        "--size", type=float, default=1.0, help="the share of each stream that is written"
    )
    options = flags.parse_args()
    adopt_orphans()
    STREAMS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        comparison = Comparison(Path(name), options.size, options.runs)
        print_head(HEAD)
        for case in CASES:
            if case.letter in options.cases:
                comparison.compare(case, options.peers)
    for peer, reason in comparison.unavailable.items():
        print(f"left out: {peer}, since {reason}")


if __name__ == "__main__":
    main()
