"""SPARQL results in JSON: a tolerant reader, and the rows as answers by key."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.garbage import no_garbage_collection
from rsp_engine.http_client.faults import NOT_JSON, NOT_RESULTS, TRUNCATED, FaultError
from rsp_engine.replica.sparql_client.request_text import COUNT
from rsp_engine.replica.sparql_client.result_table import ResultTable, Unbound, alike_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import Key, RemotePattern, RemoteSolution
    from rsp_engine.replica.sparql_client.request_text import KeyBatch
    from rsp_engine.replica.sparql_client.result_table import AlikeRows, ResultRow

__all__ = [
    "Answers",
    "RowFaults",
    "answers_of_batch",
    "answers_of_whole",
    "in_key_order",
    "read_results",
    "row_count",
]


_PLAIN = {NamedNode, Literal}  # the terms that need no care
_AT_ONCE = 1000  # rows between two checks of the deadline


@no_garbage_collection()
def read_results(
    data: bytes, names: Iterable[str], heed: Callable[[], object] = bool
) -> ResultTable:
    """Read the rows of a document: the variables that were asked for, whatever else it has.

    `heed` is called regularly and may raise to stop it.

    >>> text = b'{"results": {"bindings": [{"a": {"type": "literal", "value": "1"}}]}}'
    >>> [*read_results(text, ["a"])]
    [{'a': <Literal value=1 datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>}]
    >>> read_results(b'{"results": {"bind', ["a"])
    Traceback (most recent call last):
    ...
    rsp_engine.http_client.faults.FaultError: truncated
    """
    names = list(names)
    try:
        text = data.decode(json.detect_encoding(data))
        heed()
        alike = alike_rows(text)
        table = None if alike is None else _alike_table(alike, names, heed)
        if table is not None:
            return table
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise FaultError(_cause(error)) from None
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data"
        raise FaultError(TRUNCATED if is_cut else NOT_JSON) from None
    except (ValueError, RecursionError):
        raise FaultError(NOT_JSON) from None
    return _result_table(document, names, heed)


def _alike_table(
    rows: AlikeRows, names: Iterable[str], heed: Callable[[], object]
) -> ResultTable | None:
    """Return rows that are written alike as terms; None if some need care."""
    columns: dict[str, list[Any]] = {}
    for name in names:
        if name not in rows.columns:
            columns[name] = [Unbound.UNBOUND] * rows.size
            continue
        try:
            make = _maker(rows.forms[name])
            if make is None:
                return None
            texts, cells = rows.columns[name], columns.setdefault(name, [])
            for start in range(0, rows.size, _AT_ONCE):
                heed()
                cells.extend(make(texts[start : start + _AT_ONCE]))
        except ValueError:  # a term that is not valid
            return None
    return ResultTable(columns, rows.size)


def _maker(form: Any) -> Callable[[Sequence[str]], list[Any]] | None:  # noqa: ANN401 - any JSON value
    """Return the function that makes terms of texts, given their first cell."""
    match form:
        case {"type": "uri" | "iri"}:
            return lambda texts: list(map(NamedNode, texts))
        case {"type": "literal" | "typed-literal", "datatype": str(iri)} if iri and len(form) == 3:
            datatype = _datatype(iri)
            return lambda texts: [Literal(text, datatype=datatype) for text in texts]
        case {"type": "literal", "xml:lang": str(tag)} if tag and len(form) == 3:
            return lambda texts: [Literal(text, language=tag) for text in texts]
        case {"type": "literal"} if len(form) == 2:
            return lambda texts: list(map(Literal, texts))
    return None


def _cause(error: json.JSONDecodeError) -> str:
    """Return whether a document is truncated or not JSON at all, as a cause."""
    text = error.doc.strip()
    is_cut = error.msg.startswith("Unterminated") or error.pos >= len(error.doc.rstrip()) - 5
    return TRUNCATED if not text or (text.startswith("{") and is_cut) else NOT_JSON


def _result_table(
    document: object, names: Iterable[str], heed: Callable[[], object]
) -> ResultTable:
    """Return the rows of a parsed JSON document."""
    match document:
        case {"results": {"bindings": list(bindings)}} if set(map(type, bindings)) <= {dict}:
            columns: dict[str, list[Any]] = {name: [] for name in names}
            for start in range(0, len(bindings), _AT_ONCE):
                heed()
                some = bindings[start : start + _AT_ONCE]
                for name, cells in columns.items():
                    cells.extend(_cells([binding.get(name) for binding in some]))
            return ResultTable(columns, len(bindings))
    raise FaultError(NOT_RESULTS)


def _cells(values: list[Any]) -> list[Any]:
    """Return the cells of a variable; all at once if they are alike, as they mostly are."""
    try:
        kinds = {value["type"] for value in values}
        texts = [value["value"] for value in values]
        if kinds <= _IRI:
            return list(map(NamedNode, texts))
        datatypes = {value["datatype"] for value in values}
        if kinds <= _LITERAL and len(datatypes) == 1 and set(map(len, values)) == {3}:
            datatype = NamedNode(*datatypes)
            if set(map(type, texts)) == {str}:
                return [Literal(text, datatype=datatype) for text in texts]
    except (ValueError, KeyError, TypeError):
        pass  # not alike: unbound, of other forms, or not readable
    return [_term(value) if value else Unbound.UNBOUND for value in values]


def _term(value: Any) -> Term | None:  # noqa: ANN401 - any JSON value
    """Return the term, or None if the engine does not support it."""
    try:
        kind, text = value["type"], value["value"]
        if kind in _IRI:
            return NamedNode(text)
        if not isinstance(text, str):
            return None
        if kind in _LITERAL:
            return _literal(text, value)
        if kind == "bnode":
            # Some servers use labels that are not valid in RDF.
            digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
            return BlankNode(f"b{digest}")
    except (ValueError, KeyError, TypeError):
        pass
    return None


_IRI, _LITERAL = {"uri", "iri"}, {"literal", "typed-literal"}


def _literal(text: str, members: dict[str, object]) -> Term | None:
    datatype = members.get("datatype")
    if len(members) == 3 and isinstance(datatype, str) and datatype:
        return Literal(text, datatype=_datatype(datatype))
    language = members.get("xml:lang") or members.get("lang")
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


BAD_TERM = "bad term"
FOREIGN_ROW = "row of no key"
UNBOUND_KEY = "row without key"

Answers = dict["Key", tuple["RemoteSolution", ...]]
RowFaults = dict[str, int]


def answers_of_batch(batch: KeyBatch, rows: Sequence[ResultRow]) -> tuple[Answers, RowFaults]:
    """Return the answers of the keys of a batch; a key without rows has no solutions.

    If a row belongs to no key of the batch, the document is no answer to it: there are no answers.
    """
    table = ResultTable.of(rows)
    rows_by_key: list[list[dict[str, Any]]] = [[] for _ in batch.keys]
    places = [_place(term, len(batch.keys)) for term in table.column(batch.place)]
    names = [name for name in table.columns if name != batch.place]
    for place, row in zip(places, table.rows(names), strict=True):
        if place is None:
            return {}, {FOREIGN_ROW: 1}
        rows_by_key[place].append(row)
    return _whole_answers(list(zip(batch.keys, rows_by_key, strict=True)))


@no_garbage_collection()
def answers_of_whole(
    pattern: RemotePattern, rows: Sequence[ResultRow], *, is_all: bool = True
) -> tuple[Answers, RowFaults]:
    """Return the answers by key in the rows of the whole clause.

    Unless `is_all`, the rows are a prefix in key order, which may lack rows of its last key: that
    key is left out. Rows whose key is a blank node are skipped, since no join can match them, and
    rows without a key are faults.
    """
    table = ResultTable.of(rows)
    key_columns = [table.column(name) for name in pattern.keys]
    keys: list[Any] = list(zip(*key_columns, strict=True)) if key_columns else [()] * len(table)
    names = [name for name in table.columns if name not in pattern.keys]
    rest = table.rows(names)
    are_plain = all(set(map(type, column)) <= _PLAIN for column in key_columns)
    if is_all and pattern.keys and are_plain and table.kinds(names) <= {*_PLAIN, Unbound}:
        answers: Answers = dict(zip(keys, zip(rest, strict=True), strict=True))
        if len(answers) == len(keys):  # the common case: one row for each key
            return answers, {}
    rows_by_key: dict[Key, list[dict[str, Any]]] = {}
    faults: RowFaults = {}
    if not pattern.keys and is_all:
        rows_by_key[()] = []
    for key, row in zip(keys, rest, strict=True):
        kinds = _PLAIN if are_plain else set(map(type, key))
        if kinds <= _PLAIN:
            rows_by_key.setdefault(key, []).append(row)
        elif kinds & {Unbound, NoneType}:
            cause = UNBOUND_KEY if Unbound in kinds else BAD_TERM
            faults[cause] = faults.get(cause, 0) + 1
    if not is_all and keys:
        rows_by_key.pop(keys[-1], None)
    answers, unreadable = _whole_answers(rows_by_key.items())
    for cause, count in unreadable.items():
        faults[cause] = faults.get(cause, 0) + count
    return answers, faults


@no_garbage_collection()
def in_key_order(pattern: RemotePattern, rows: Sequence[ResultRow]) -> ResultTable:
    """Return rows sorted by the text of their keys; rows of the same key stay as they are."""
    table = ResultTable.of(rows)
    order: Sequence[int] = range(len(table))
    for name in reversed(pattern.keys):  # sorting is stable: the first key is the last to sort by
        order = sorted(order, key=_texts(table.column(name)).__getitem__)
    return table.take(order)


def _texts(column: list[Any]) -> list[str]:
    """Return the cells of a variable as text; that of IRIs is made here, which is faster."""
    if set(map(type, column)) == {NamedNode}:
        return [f"<{term.value}>" for term in column]
    return [str(term) for term in column]


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


def _whole_answers(
    rows_by_key: Collection[tuple[Key, list[Any]]],
) -> tuple[Answers, RowFaults]:
    kinds = {type(term) for _, rows in rows_by_key for row in rows for term in row.values()}
    if kinds <= _PLAIN:
        return {key: _sorted(rows) for key, rows in rows_by_key}, {}
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
    names: dict[BlankNode, BlankNode] = {}
    ordered = _sorted(solutions)
    for solution in ordered:
        for variable in sorted(solution):
            term = solution[variable]
            if isinstance(term, BlankNode):
                if term not in names:
                    names[term] = BlankNode(f"{_digest(key)}n{len(names)}")
                solution[variable] = names[term]
    return ordered


def _sorted(solutions: list[dict[str, Term]]) -> tuple[dict[str, Term], ...]:
    return tuple(sorted(solutions, key=_order) if len(solutions) > 1 else solutions)


def _order(solution: dict[str, Term]) -> list[tuple[str, str]]:
    """Return the sort key of a solution. Blank nodes are equal: their labels are arbitrary."""
    return [
        (name, "" if isinstance(term, BlankNode) else str(term))
        for name, term in sorted(solution.items(), key=lambda item: item[0])
    ]


def _digest(key: Key) -> str:
    text = " ".join(map(str, key)).encode()
    return "r" + hashlib.blake2b(text, digest_size=8).hexdigest()
