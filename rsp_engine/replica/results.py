"""SPARQL results in JSON, read tolerantly.

What is only sloppy is read: missing heads, members that nobody asked for, `typed-literal`, a byte
order mark. What is not all there is not read at all. (SPARQL 1.1 Query Results JSON Format,
section 3.)
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.replica.faults import NOT_JSON, NOT_RESULTS, TRUNCATED, FaultError

if TYPE_CHECKING:
    from rsp_engine.replica.pattern import Term
    from rsp_engine.replica.rows import Row

__all__ = ["read_results", "rows_of"]


def read_results(data: bytes) -> list[Row]:
    """Read a document.

    >>> read_results(b'{"results": {"bindings": [{"a": {"type": "literal", "value": "1"}}]}}')
    [{'a': <Literal value=1 datatype=<NamedNode value=http://www.w3.org/2001/XMLSchema#string>>}]
    >>> read_results(b'{"results": {"bind')
    Traceback (most recent call last):
    ...
    rsp_engine.replica.faults.FaultError: truncated
    """
    try:
        text = data.decode(json.detect_encoding(data))
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise FaultError(_why(error)) from None
    except (ValueError, RecursionError):
        raise FaultError(NOT_JSON) from None
    return rows_of(document)


def _why(error: json.JSONDecodeError) -> str:
    """Tell a document that breaks off from one that is none."""
    text = error.doc.strip()
    breaks_off = error.msg.startswith("Unterminated") or error.pos >= len(error.doc.rstrip()) - 5
    return TRUNCATED if not text or (text.startswith("{") and breaks_off) else NOT_JSON


def rows_of(document: object) -> list[Row]:
    """Return the rows of a document that has been read as JSON."""
    match document:
        case {"results": {"bindings": list(bindings)}}:
            return [_row(binding) for binding in bindings]
    raise FaultError(NOT_RESULTS)


def _row(binding: object) -> Row:
    if not isinstance(binding, dict):
        raise FaultError(NOT_RESULTS)
    return {str(name): _term(value) for name, value in binding.items() if value}


def _term(value: object) -> Term | None:
    """Return the term, or nothing if it is none that the engine can hold."""
    try:
        match value:
            case {"type": "uri" | "iri", "value": str(iri)}:
                return NamedNode(iri)
            case {"type": "bnode", "value": str(label)}:
                # Servers use labels that are not RDF's.
                digest = hashlib.blake2b(label.encode(), digest_size=8).hexdigest()
                return BlankNode(f"b{digest}")
            case {"type": "literal" | "typed-literal", "value": str(text), **more}:
                return _literal(text, more)
    except ValueError:
        pass
    return None


def _literal(text: str, more: dict[object, object]) -> Term | None:
    language = more.get("xml:lang") or more.get("lang")
    datatype = more.get("datatype")
    if more.get("its:dir"):
        return None
    if isinstance(language, str):
        return Literal(text, language=language)
    if isinstance(datatype, str) and datatype:
        return Literal(text, datatype=NamedNode(datatype))
    return Literal(text)
