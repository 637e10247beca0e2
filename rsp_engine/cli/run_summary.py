"""What a run says on standard error, beside its answers."""

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
    """What services did not answer: it is told when it first happens, and at the end."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def hear(self, stats: Mapping[str, Any]) -> None:
        for cause, number in stats.get("faults", {}).items():
            if cause not in self._seen:
                told = f"warning: a service could not be asked: {cause}"
                hint = "answers go on with what is known; rsp doctor tries endpoints"
                typer.echo(f"{told}\n  = hint: {hint}", err=True)
            self._seen[cause] += number

    def tell(self) -> None:
        if self._seen:
            kinds = ", ".join(f"{cause} {number}" for cause, number in sorted(self._seen.items()))
            typer.echo(f"{self._seen.total()} faults of services ({kinds})", err=True)


class RunVerdict:
    """What the oracle says of all answers together."""

    def __init__(self) -> None:
        self._windows, self._ndcg, self._precision = 0, 0.0, 0.0

    def hear(self, stats: Mapping[str, Any]) -> None:
        if "ndcg" in stats:
            self._windows += 1
            self._ndcg += stats["ndcg"]
            self._precision += stats["precision"]

    def tell(self) -> None:
        if self._windows:
            ndcg, precision = self._ndcg / self._windows, self._precision / self._windows
            told = f"against the oracle: nDCG {ndcg:.3f}, precision {precision:.3f}"
            typer.echo(f"{told}, mean of {self._windows} windows", err=True)


def print_summary(counts: Counts, dead_letters: str | None) -> None:
    """Say on standard error what happened, where somebody looks or something was set aside."""
    dead = sum(counts.dead.values())
    if not dead and not sys.stderr.isatty():
        return
    said = f"{counts.elements} elements, {counts.triples} triples, {counts.answers} answers"
    if counts.between_windows:
        said += f", {counts.between_windows} elements between windows"
    typer.echo(said, err=True)
    if dead:
        kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(counts.dead.items()))
        where = f"in {dead_letters}" if dead_letters else "--dead-letters FILE keeps them"
        typer.echo(f"{dead} set aside ({kinds}); {where}", err=True)
