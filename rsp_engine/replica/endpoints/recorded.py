"""The recorded endpoint: a history of remote values, whose answers depend on event time only.

The history is a CSV file, a JSON Lines file, or a mapping in Python. In a CSV file, each row is a
solution of a key from its time on. Rows with the same key and time belong together. A row with only
a time and a key means that the key has no solutions from then on. Terms are written as in
N-Triples; numbers and booleans may be bare.

    time,user,followers
    0,<http://example.org/ann>,10
    60000,<http://example.org/ann>,12

In JSON Lines, `solutions` are all solutions of a key from `time` on:

    {"time": 0, "key": ["<http://example.org/ann>"], "solutions": [{"followers": "10"}]}
"""

from __future__ import annotations

import csv
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from pyoxigraph import Literal

from rsp_engine.errors import SourceError
from rsp_engine.replica.endpoints.endpoint import FetchResult
from rsp_engine.replica.endpoints.in_process import spent
from rsp_engine.replica.store.terms import read_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.endpoints.endpoint import Limits
    from rsp_engine.replica.pattern import Key, RemotePattern, RemoteSolution

__all__ = ["RecordedEndpoint", "Value", "read_csv", "read_jsonl"]

_Terms = Mapping[str, Callable[[str], "Term"]]
_History = defaultdict["Key", dict[int, list["RemoteSolution"]]]


class Value(NamedTuple):
    """All solutions of a key from a time on."""

    since: int
    solutions: tuple[RemoteSolution, ...]


class RecordedEndpoint:
    """Answers with the value of each key at `now`. A key without a value has no solutions.

    >>> from pyoxigraph import Literal
    >>> from rsp_engine.replica.endpoints.endpoint import UNLIMITED
    >>> ann, one = (Literal("ann"),), ({"n": Literal("1")},)
    >>> recorded = RecordedEndpoint({ann: [(10, one), (20, ())]})
    >>> [recorded.fetch([ann], UNLIMITED, now).answers[ann] == one for now in (9, 10, 19, 20)]
    [False, True, True, False]
    """

    def __init__(
        self, history: Mapping[Key, Iterable[tuple[int, tuple[RemoteSolution, ...]]]]
    ) -> None:
        self._history = {key: [Value(*v) for v in values] for key, values in history.items()}
        self._times = {key: [v.since for v in values] for key, values in self._history.items()}
        self._modified: RecordedEndpoint | None = None
        for times in self._times.values():
            if any(later <= time for time, later in pairwise(times)):
                raise ValueError("the values of a key must be in the order of their times")

    def fetch(self, keys: Sequence[Key], limits: Limits, now: int) -> FetchResult:
        if (cause := spent(limits)) is not None:
            return FetchResult(faults={cause: 1})
        return FetchResult({key: self._at(key, now) for key in keys}, int(bool(keys)))

    def snapshot(self, limits: Limits, now: int) -> FetchResult:
        if (cause := spent(limits)) is not None:
            return FetchResult(faults={cause: 1})
        values = ((key, self._at(key, now)) for key in self._history)
        return FetchResult({key: solutions for key, solutions in values if solutions}, 1)

    def changes(self) -> list[tuple[int, Key, tuple[RemoteSolution, ...]]]:
        """Return the values of all keys after their first ones, in the order of their times."""
        changes = [(v.since, key, v.solutions) for key, vs in self._history.items() for v in vs[1:]]
        return sorted(changes, key=itemgetter(0))

    def modified(self) -> RecordedEndpoint:
        """Return an endpoint with the time of the last change of each key: a change signal."""
        if self._modified is None:
            self._modified = RecordedEndpoint(
                {
                    key: [(value.since, ({"modified": Literal(value.since)},)) for value in values]
                    for key, values in self._history.items()
                }
            )
        return self._modified

    def _at(self, key: Key, now: int) -> tuple[RemoteSolution, ...]:
        place = bisect_right(self._times.get(key, ()), now)
        return self._history[key][place - 1].solutions if place else ()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def read_csv(
    path: str | Path,
    pattern: RemotePattern,
    time: str = "time",
    terms: _Terms | None = None,
) -> RecordedEndpoint:
    """Read a CSV file whose columns are the variables of a clause; other columns are ignored.

    `terms` maps a column to the function that makes terms of its cells, if they are not written as
    terms.
    """
    history: _History = defaultdict(dict)
    with _open(path) as file:
        rows = csv.DictReader(file, strict=True)
        _check_columns(path, (time, *pattern.keys, *pattern.variables), rows.fieldnames or ())
        while True:
            try:
                if (row := next(rows, None)) is None:
                    return _endpoint(history)
                key, solution = _solution(row, pattern, terms or {})
                solutions = history[key].setdefault(int(row[time]), [])
            except (ValueError, LookupError, TypeError, csv.Error) as error:
                raise _error_at(path, rows.reader.line_num, error) from None
            if solution or not pattern.variables:
                solutions.append(solution)


def _check_columns(path: str | Path, names: Iterable[str], columns: Sequence[str]) -> None:
    for name in names:
        if name not in columns:
            raise SourceError(f"{path} has no column {name!r}", f"it has {', '.join(columns)}")


def _solution(
    row: Mapping[str, str | None],
    pattern: RemotePattern,
    terms: Mapping[str, Callable[[str], Term]],
) -> tuple[Key, dict[str, Term]]:
    """Return the key and the solution of a row; an empty cell is unbound."""
    if None in row or None in row.values():
        raise ValueError("it has more or fewer cells than the first line")
    names = (*pattern.keys, *pattern.variables)
    bound = {name: terms.get(name, read_term)(cell) for name in names if (cell := row[name])}
    for name in pattern.keys:
        if name not in bound:
            raise ValueError(f"{name} is empty")
    return tuple(bound.pop(name) for name in pattern.keys), bound


def read_jsonl(path: str | Path, pattern: RemotePattern) -> RecordedEndpoint:
    """Read a JSON Lines file; variables that are not in the clause are ignored."""
    history: _History = defaultdict(dict)
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                key, time, solutions = _entry(json.loads(line), pattern)
                if time in history[key]:
                    raise ValueError("the key has another line of the same time")
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                raise _error_at(path, number, error) from None
            history[key][time] = solutions
    return _endpoint(history)


def _entry(entry: dict[str, Any], pattern: RemotePattern) -> tuple[Key, int, list[RemoteSolution]]:
    key = tuple(read_term(text) for text in entry["key"])
    if len(key) != len(pattern.keys):
        raise ValueError(f"a key has {len(pattern.keys)} terms")
    if type(entry["time"]) is not int:
        raise ValueError("the time must be whole milliseconds")
    solutions: list[RemoteSolution] = [
        {name: read_term(solution[name]) for name in pattern.variables if name in solution}
        for solution in entry["solutions"]
    ]
    return key, entry["time"], solutions


def _endpoint(history: _History) -> RecordedEndpoint:
    return RecordedEndpoint(
        {
            key: [(time, tuple(values[time])) for time in sorted(values)]
            for key, values in history.items()
        }
    )


@contextmanager
def _open(path: str | Path) -> Iterator[TextIO]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SourceError(f"{path} is not UTF-8") from None


def _error_at(path: str | Path, line: int, error: Exception) -> SourceError:
    return SourceError(f"line {line} of {path} cannot be read: {error}")
