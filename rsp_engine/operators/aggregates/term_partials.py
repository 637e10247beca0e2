"""Partial aggregates of RDF terms, by key and end (the last window that contains a value).

They are the counterpart of `pane_partials` for values whose order float64 may not preserve:
strings, long numbers, numbers of several datatypes. Sums are exact, so a value can be withdrawn.
MIN and MAX need no withdrawal: a value that moves to a later end is still in every window up to its
earlier end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyoxigraph as ox

from rsp_engine.model.terms.term_order import full_key
from rsp_engine.operators.sparql.term_aggregates import ExactSum

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.aggregates.pane_partials import Function

__all__ = ["TermPartials"]


class _Partial(Protocol):
    """The partial aggregate of some values."""

    def add(self, term: Term, times: int) -> None:
        """Add a value; `times` of -1 withdraws it."""

    def merge(self, other: _Partial) -> None:
        """Merge another partial of the same function into this one."""

    def term(self) -> Term | None:
        """Return the aggregate; None if there is none."""


class _Count:
    def __init__(self) -> None:
        self._count = 0

    def add(self, term: Term, times: int) -> None:
        self._count += times

    def merge(self, other: _Partial) -> None:
        assert isinstance(other, _Count), "partials are of one function"  # noqa: S101
        self._count += other._count

    def term(self) -> ox.Literal:
        return ox.Literal(self._count)


class _Sum:
    def __init__(self) -> None:
        self._sum = ExactSum()

    def add(self, term: Term, times: int) -> None:
        self._sum.add(term, times)

    def merge(self, other: _Partial) -> None:
        assert isinstance(other, _Sum), "partials are of one function"  # noqa: S101
        self._sum.merge(other._sum)

    def term(self) -> ox.Literal | None:
        return self._sum.sum()


class _Average(_Sum):
    def term(self) -> ox.Literal | None:
        return self._sum.average()


class _Least:
    def __init__(self) -> None:
        self._best: tuple[str, Term] | None = None

    @staticmethod
    def _is_better(one: str, other: str) -> bool:
        return one < other

    def add(self, term: Term, times: int) -> None:
        if times > 0:
            self._offer(full_key(term), term)

    def _offer(self, key: str, term: Term) -> None:
        if self._best is None or self._is_better(key, self._best[0]):
            self._best = key, term

    def merge(self, other: _Partial) -> None:
        assert isinstance(other, _Least), "partials are of one function"  # noqa: S101
        if other._best is not None:
            self._offer(*other._best)

    def term(self) -> Term | None:
        return None if self._best is None else self._best[1]


class _Largest(_Least):
    @staticmethod
    def _is_better(one: str, other: str) -> bool:
        return one > other


_PARTIALS: dict[Function, Callable[[], _Partial]] = {
    "count": _Count,
    "sum": _Sum,
    "avg": _Average,
    "min": _Least,
    "max": _Largest,
}


class TermPartials:
    """The partials of all keys and ends. Time for a window: O(r), with r partials. Memory: O(r).

    >>> partials = TermPartials("max")
    >>> partials.add(3, 7, ox.Literal("a"))
    >>> partials.add(2, 7, ox.Literal("b"))
    >>> str(partials.terms()[7])
    '"b"'
    >>> partials.expire(3)
    >>> str(partials.terms()[7])
    '"a"'
    """

    def __init__(self, function: Function) -> None:
        self._new = _PARTIALS[function]
        self._ends: dict[int, dict[int, _Partial]] = {}

    def add(self, end: int, number: int, term: Term, times: int = 1) -> None:
        """Add a value of a key that counts until an end; `times` of -1 withdraws it."""
        self._of(self._ends.setdefault(end, {}), number).add(term, times)

    def _of(self, partials: dict[int, _Partial], number: int) -> _Partial:
        if number not in partials:
            partials[number] = self._new()
        return partials[number]

    def expire(self, window: int) -> None:
        """Remove the partials of ends before a window."""
        for end in [end for end in self._ends if end < window]:
            del self._ends[end]

    def terms(self) -> dict[int, Term | None]:
        """Return the aggregates of all keys."""
        merged: dict[int, _Partial] = {}
        for partials in self._ends.values():
            for number, partial in partials.items():
                self._of(merged, number).merge(partial)
        return {number: partial.term() for number, partial in merged.items()}
