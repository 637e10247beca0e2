"""Snapshots on the command line: `query.now` on SIGUSR1 and at the end of a run.

A snapshot is a line of JSON on standard error, in the form of an answer. It has the window of the
last answer of its query; its statistics name the snapshot's number of pairs and its range.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

import typer

from rsp_engine.errors import BindingError
from rsp_engine.model.answers import Answer
from rsp_engine.model.quantities import parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.drivers.registered_query import Query

__all__ = ["SnapshotPrinter", "parse_snapshot"]


def parse_snapshot(text: str) -> tuple[int, int | None]:
    """Return the number of pairs of `K` or `K,RANGE`, and the range in ms or elements, if any.

    >>> parse_snapshot("3"), parse_snapshot("3,1m"), parse_snapshot("3,500")
    ((3, None), (3, 60000), (3, 500))
    """
    k, comma, size = text.partition(",")
    try:
        return int(k), parse_duration(size.strip()) if comma else None
    except ValueError:
        message = f"--snapshot {text}: this is not a number of pairs and a range"
        raise BindingError(message, "write K,RANGE, such as 3,1m, or 3,500 for elements") from None


class SnapshotPrinter:
    """Prints the snapshots of the rankings of pairs.

    A request that is out of bounds is refused on construction, before anything runs.
    """

    def __init__(self, queries: Sequence[Query], text: str) -> None:
        from rsp_engine.io.sinks.jsonl import JsonLinesWriter

        self._last: dict[str, Answer] = {}
        self._is_wanted = False
        self._line = JsonLinesWriter()
        self._k, self._range = parse_snapshot(text)
        self._queries = {query.physical.name: query for query in _of_pairs(queries)}
        for query in self._queries.values():
            query.now(self._k, self._range)

    def after_each(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        """Yield answers; print snapshots after one if a signal asks for them, and at the end."""
        with self._signals():
            for answer in answers:
                yield answer
                if answer.query in self._queries:
                    self._last[answer.query] = answer
                if self._is_wanted:
                    self._is_wanted = False
                    self._show()
        self._show()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Take SIGUSR1 for a request; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGUSR1, self._want)
        try:
            yield
        finally:
            signal.signal(signal.SIGUSR1, before)

    def _want(self, number: int, frame: object) -> None:
        """Note a request: the signal may have interrupted an evaluation."""
        self._is_wanted = True

    def _show(self) -> None:
        """Print a snapshot of each query that has answered."""
        for name, last in self._last.items():
            try:
                content = self._queries[name].now(self._k, self._range)
            except BindingError as error:
                typer.echo(f"warning: no snapshot of {name}: {error.message}", err=True)
                continue
            stats = {"snapshot": {"k": self._k, "range": self._range}}
            line = self._line(Answer(name, last.window, content, stats))
            typer.echo(line, err=True, nl=False)


def _of_pairs(queries: Sequence[Query]) -> list[Query]:
    """Return the rankings of pairs; refuse the flag if there are none."""
    from rsp_engine.evaluators.pairs.config import PairsConfig

    ranked = [each for each in queries if isinstance(each.physical.operator, PairsConfig)]
    if not ranked:
        hint = "remove it; `rsp explain` shows the operator of each query"
        raise BindingError("--snapshot needs a ranking of pairs, but no query is one", hint)
    return ranked
