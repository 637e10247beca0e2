"""The messages of a run on standard error: faults of services, the verdict, and the summary."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.monitor.run_monitor import Counts

__all__ = ["FaultReporter", "RunVerdict", "print_summary"]


class FaultReporter:
    """A reporter of the faults of services: each kind when it first happens, and all at the end."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def add(self, stats: Mapping[str, Any]) -> None:
        """Add the faults of an answer, and warn of new kinds."""
        for cause, number in stats.get("faults", {}).items():
            if cause not in self._seen:
                warning = f"warning: a request to a service failed: {cause}"
                hint = "answers use the values in the replica; rsp doctor probes endpoints"
                typer.echo(f"{warning}\n  = hint: {hint}", err=True)
            self._seen[cause] += number

    def report(self) -> None:
        """Print the number of faults, if there are any."""
        if self._seen:
            kinds = ", ".join(f"{cause} {number}" for cause, number in sorted(self._seen.items()))
            typer.echo(f"{self._seen.total()} faults of services ({kinds})", err=True)


class RunVerdict:
    """The mean quality of all answers against the oracle."""

    def __init__(self) -> None:
        self._windows, self._ndcg, self._precision = 0, 0.0, 0.0

    def add(self, stats: Mapping[str, Any]) -> None:
        """Add the scores of an answer, if the oracle has judged it."""
        if "ndcg" in stats:
            self._windows += 1
            self._ndcg += stats["ndcg"]
            self._precision += stats["precision"]

    def report(self) -> None:
        """Print the means, if the oracle has judged an answer."""
        if self._windows:
            ndcg, precision = self._ndcg / self._windows, self._precision / self._windows
            means = f"against the oracle: nDCG {ndcg:.3f}, precision {precision:.3f}"
            typer.echo(f"{means}, mean of {self._windows} windows", err=True)


def print_summary(counts: Counts, dead_letters: str | None) -> None:
    """Print the counts of a run, on a terminal or if there are dead letters."""
    dead = sum(counts.dead.values())
    if not dead and not sys.stderr.isatty():
        return
    summary = f"{counts.elements} elements, {counts.triples} triples, {counts.answers} answers"
    if counts.between_windows:
        summary += f", {counts.between_windows} elements between windows"
    typer.echo(summary, err=True)
    if dead:
        kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(counts.dead.items()))
        where = f"in {dead_letters}" if dead_letters else "--dead-letters FILE keeps them"
        typer.echo(f"{dead} set aside ({kinds}); {where}", err=True)
