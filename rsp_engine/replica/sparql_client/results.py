"""A tolerant reader of SPARQL results in JSON.

It accepts harmless deviations: a missing head, unknown members, `typed-literal`, a byte order mark.
It rejects incomplete documents. (SPARQL 1.1 Query Results JSON Format, section 3.)
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.replica.sparql_client.faults import NOT_JSON, NOT_RESULTS, TRUNCATED, FaultError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.sparql_client.rows import ResultRow

__all__ = ["read_results", "result_rows"]

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
