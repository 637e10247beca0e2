"""SPARQL results in JSON: a tolerant reader, and the rows as answers by key."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.model.terms.term import Term
from rsp_engine.replica.sparql_client.faults import NOT_JSON, NOT_RESULTS, TRUNCATED, FaultError
from rsp_engine.replica.sparql_client.request_text import COUNT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rsp_engine.replica.pattern import Key, RemotePattern, RemoteSolution
    from rsp_engine.replica.sparql_client.request_text import KeyBatch

__all__ = [
    "Answers",
    "ResultRow",
    "RowFaults",
    "answers_of_batch",
    "answers_of_whole",
    "read_results",
    "row_count",
]


_AT_ONCE = 1000  # rows between two checks of the deadline


def read_results(data: bytes, heed: Callable[[], object] = bool) -> list[ResultRow]:
    """Read the rows of a document. `heed` is called regularly and may raise to stop it.

    >>> read_results(b'{"results": {"bindings": [{"a": {"type": "literal", "value": "1"}}]}}')
    [{'a': <Literal value=1 datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>}]
    >>> read_results(b'{"results": {"bind')
    Traceback (most recent call last):
    ...
    rsp_engine.replica.sparql_client.faults.FaultError: truncated
    """
    try:
        text = data.decode(json.detect_encoding(data))
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise FaultError(_cause(error)) from None
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data"
        raise FaultError(TRUNCATED if is_cut else NOT_JSON) from None
    except (ValueError, RecursionError):
        raise FaultError(NOT_JSON) from None
    return result_rows(document, heed)


def _cause(error: json.JSONDecodeError) -> str:
    """Return whether a document is truncated or not JSON at all, as a cause."""
    text = error.doc.strip()
    is_cut = error.msg.startswith("Unterminated") or error.pos >= len(error.doc.rstrip()) - 5
    return TRUNCATED if not text or (text.startswith("{") and is_cut) else NOT_JSON


def result_rows(document: object, heed: Callable[[], object] = bool) -> list[ResultRow]:
    """Return the rows of a parsed JSON document."""
    match document:
        case {"results": {"bindings": list(bindings)}}:
            rows: list[ResultRow] = []
            for start in range(0, len(bindings), _AT_ONCE):
                heed()
                rows += map(_row, bindings[start : start + _AT_ONCE])
            return rows
    raise FaultError(NOT_RESULTS)


def _row(binding: object) -> ResultRow:
    if not isinstance(binding, dict):
        raise FaultError(NOT_RESULTS)
    return {name: _term(value) for name, value in binding.items() if value}


def _term(value: Any) -> Term | None:  # noqa: ANN401 - any JSON value
    """Return the term, or None if the engine does not support it."""
    try:
        kind, text = value["type"], value["value"]
        if not isinstance(text, str):
            return None
        if kind in ("uri", "iri"):
            return NamedNode(text)
        if kind in ("literal", "typed-literal"):
            return _literal(text, value)
        if kind == "bnode":
            # Some servers use labels that are not valid in RDF.
            digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
            return BlankNode(f"b{digest}")
    except (ValueError, KeyError, TypeError):
        pass
    return None


def _literal(text: str, members: dict[str, object]) -> Term | None:
    language = members.get("xml:lang") or members.get("lang")
    datatype = members.get("datatype")
    if members.get("its:dir"):
        return None
    if isinstance(language, str):
        return Literal(text, language=language)
    if isinstance(datatype, str) and datatype:
        return Literal(text, datatype=_datatype(datatype))
    return Literal(text)


@lru_cache(maxsize=64)
def _datatype(iri: str) -> NamedNode:
    return NamedNode(iri)


ResultRow = Mapping[str, Term | None]
"""A row as received. Unbound variables are absent; an unreadable term is None."""

BAD_TERM = "bad term"
FOREIGN_ROW = "row of no key"
UNBOUND_KEY = "row without key"

Answers = dict["Key", tuple["RemoteSolution", ...]]
RowFaults = dict[str, int]


def answers_of_batch(batch: KeyBatch, rows: Iterable[ResultRow]) -> tuple[Answers, RowFaults]:
    """Return the answers of the keys of a batch; a key without rows has no solutions.

    If a row belongs to no key of the batch, the document is no answer to it: there are no answers.
    """
    rows_by_key: list[list[ResultRow]] = [[] for _ in batch.keys]
    for row in rows:
        place = _place(row.get(batch.place), len(batch.keys))
        if place is None:
            return {}, {FOREIGN_ROW: 1}
        rows_by_key[place].append({name: term for name, term in row.items() if name != batch.place})
    return _whole_answers(zip(batch.keys, rows_by_key, strict=True))


def answers_of_whole(
    pattern: RemotePattern, rows: Sequence[ResultRow], *, is_all: bool = True
) -> tuple[Answers, RowFaults]:
    """Return the answers by key in the rows of the whole clause.

    Unless `is_all`, the rows are a prefix in key order, which may lack rows of its last key: that
    key is left out. Rows whose key is a blank node are skipped, since no join can match them, and
    rows without a key are faults.
    """
    rows_by_key: dict[Key, list[ResultRow]] = defaultdict(list)
    faults: RowFaults = {}
    key: Key = ()
    if not pattern.keys and is_all:
        rows_by_key[()] = []
    for row in rows:
        terms = [row.get(name) for name in pattern.keys]
        key = tuple(term for term in terms if term is not None)
        if len(key) < len(terms):
            is_there = all(name in row for name in pattern.keys)
            cause = BAD_TERM if is_there else UNBOUND_KEY
            faults[cause] = faults.get(cause, 0) + 1
        elif not any(isinstance(term, BlankNode) for term in key):
            rows_by_key[key].append({n: term for n, term in row.items() if n not in pattern.keys})
    if not is_all:
        rows_by_key.pop(key, None)
    answers, unreadable = _whole_answers(rows_by_key.items())
    for cause, count in unreadable.items():
        faults[cause] = faults.get(cause, 0) + count
    return answers, faults


def row_count(rows: Sequence[ResultRow]) -> int | None:
    """Return the number in the answer to a count; None if it is no such answer.

    >>> row_count([{"rsp_rows": Literal(7)}]), row_count([])
    (7, None)
    """
    if len(rows) != 1 or not isinstance(term := rows[0].get(COUNT), Literal):
        return None
    return int(term.value) if term.value.isascii() and term.value.isdigit() else None


def _place(term: Term | None, size: int) -> int | None:
    if not isinstance(term, Literal) or not (term.value.isascii() and term.value.isdigit()):
        return None
    place = int(term.value) if len(term.value) < 10 else size
    return place if place < size else None


def _whole_answers(rows_by_key: Iterable[tuple[Key, list[ResultRow]]]) -> tuple[Answers, RowFaults]:
    answers: Answers = {}
    bad = 0
    for key, rows in rows_by_key:
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
    """Return the sort key of a solution. Blank nodes are equal: their labels are arbitrary."""
    return [
        (name, "" if isinstance(term, BlankNode) else str(term))
        for name, term in sorted(solution.items(), key=lambda item: item[0])
    ]


def _digest(key: Key) -> str:
    text = " ".join(map(str, key)).encode()
    return "r" + hashlib.blake2b(text, digest_size=8).hexdigest()
