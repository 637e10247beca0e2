"""From rows of a remote answer to the answers of keys.

An answer is whole or it is none: a key with one value that cannot be read is not answered. The
solutions of a key stand in an order of their own, and its blank nodes get names that depend on the
key alone, so two answers that say the same are equal.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Literal

from rsp_engine.model.terms.term import Term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rsp_engine.replica.pattern import Key, RemotePattern, RemoteSolution
    from rsp_engine.replica.sparql_client.request_text import KeyBatch

__all__ = [
    "BAD_TERM",
    "FOREIGN_ROW",
    "UNBOUND_KEY",
    "Answers",
    "ResultRow",
    "RowFaults",
    "answers_of_batch",
    "answers_of_whole",
]

ResultRow = Mapping[str, Term | None]
"""A row as it came. A variable without a value is absent; a value that is no term is nothing."""

BAD_TERM = "bad term"
FOREIGN_ROW = "row of no key"
UNBOUND_KEY = "row without key"

Answers = dict["Key", tuple["RemoteSolution", ...]]
RowFaults = dict[str, int]


def answers_of_batch(batch: KeyBatch, rows: Iterable[ResultRow]) -> tuple[Answers, RowFaults]:
    """Return what a whole document says of the keys of a batch: a key without rows has none.

    A row that belongs to no key makes the document one that was not asked for.
    """
    found: list[list[ResultRow]] = [[] for _ in batch.keys]
    for row in rows:
        place = _place(row.get(batch.place), len(batch.keys))
        if place is None:
            return {}, {FOREIGN_ROW: 1}
        found[place].append({name: term for name, term in row.items() if name != batch.place})
    return _whole_answers(zip(batch.keys, found, strict=True))


def answers_of_whole(
    pattern: RemotePattern, rows: Sequence[ResultRow], *, is_all: bool = True
) -> tuple[Answers, RowFaults]:
    """Return what the rows of the whole clause say, key by key.

    Rows that are not all there are, in the order of the keys, may lack some of their last key: it
    is left out. A blank node as a key can never be joined, and a row without a key belongs to none.
    """
    found: dict[Key, list[ResultRow]] = defaultdict(list)
    faults: RowFaults = {}
    key: Key = ()
    if not pattern.keys and is_all:
        found[()] = []
    for row in rows:
        terms = [row.get(name) for name in pattern.keys]
        key = tuple(term for term in terms if term is not None)
        if len(key) < len(terms):
            is_there = all(name in row for name in pattern.keys)
            cause = BAD_TERM if is_there else UNBOUND_KEY
            faults[cause] = faults.get(cause, 0) + 1
        elif not any(isinstance(term, BlankNode) for term in key):
            found[key].append({n: term for n, term in row.items() if n not in pattern.keys})
    if not is_all:
        found.pop(key, None)
    answers, more = _whole_answers(found.items())
    for cause, count in more.items():
        faults[cause] = faults.get(cause, 0) + count
    return answers, faults


def _place(term: Term | None, size: int) -> int | None:
    if not isinstance(term, Literal) or not (term.value.isascii() and term.value.isdigit()):
        return None
    place = int(term.value) if len(term.value) < 10 else size
    return place if place < size else None


def _whole_answers(found: Iterable[tuple[Key, list[ResultRow]]]) -> tuple[Answers, RowFaults]:
    answers: Answers = {}
    bad = 0
    for key, rows in found:
        solutions = [_readable(row) for row in rows]
        readable = [solution for solution in solutions if solution is not None]
        if len(readable) == len(rows):
            answers[key] = _in_order(key, readable)
        else:
            bad += 1
    return answers, {BAD_TERM: bad} if bad else {}


def _readable(row: ResultRow) -> dict[str, Term] | None:
    terms = {name: term for name, term in row.items() if term is not None}
    return terms if len(terms) == len(row) else None


def _in_order(key: Key, solutions: list[dict[str, Term]]) -> tuple[RemoteSolution, ...]:
    if len(solutions) > 1:
        solutions = sorted(solutions, key=_order)
    names: dict[BlankNode, BlankNode] = {}
    for solution in solutions:
        for variable in sorted(solution):
            term = solution[variable]
            if isinstance(term, BlankNode):
                if term not in names:
                    names[term] = BlankNode(f"{_digest(key)}n{len(names)}")
                solution[variable] = names[term]
    return tuple(solutions)


def _order(solution: dict[str, Term]) -> list[tuple[str, str]]:
    """Blank nodes are equal in order: the names they came with say nothing."""
    return [
        (name, "" if isinstance(term, BlankNode) else str(term))
        for name, term in sorted(solution.items(), key=lambda item: item[0])
    ]


def _digest(key: Key) -> str:
    text = " ".join(map(str, key)).encode()
    return "r" + hashlib.blake2b(text, digest_size=8).hexdigest()
