"""The SPARQL text of requests.

Keys are sent in a VALUES block, each with its index in the batch, and rows are assigned to keys by
this index: a server may return a number or a language tag in another form than in the request. The
group of the SERVICE clause follows the block unchanged, so it keeps its meaning.

Terms come from streams and can be hostile. Each is rebuilt, which validates it, and serialized by
pyoxigraph; keys that cannot be serialized are never requested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rsp_engine.model.terms.term import Term
    from rsp_engine.replica.pattern import Key, RemotePattern

__all__ = [
    "BLANK_NODE_KEY",
    "LONG_KEY",
    "WRONG_KEY",
    "KeyBatch",
    "batch_of",
    "batches",
    "key_fault",
    "page_text",
    "place_variable",
    "whole_text",
    "write_term",
]

BLANK_NODE_KEY = "blank node key"
LONG_KEY = "key too long"
WRONG_KEY = "key that cannot be written"

MOST_KEYS = 100
"""The default number of keys per batch."""
MOST_BYTES = 64 * 1024
"""The default size of a VALUES block in bytes."""

_ESCAPE = re.compile(r"\\\\(?P<u>[uU])|\\.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """A request for some keys. `place` is the variable with the index of the key of a row."""

    text: str
    place: str
    keys: tuple[Key, ...]


def write_term(term: Term) -> str:
    r"""Write an IRI or a literal as SPARQL 1.1; raise `ValueError` for any other or invalid term.

    >>> print(write_term(Literal('" } #', language="en")))
    "\" } #"@en

    Some servers decode `\u` before they parse the query, even after an escaped backslash. So the
    letter after a backslash is itself escaped, which all servers read the same.

    >>> print(write_term(Literal(r"\u0022")))
    "\\\u00750022"
    """
    match term:
        case NamedNode():
            return str(NamedNode(term.value))
        case Literal():
            return _write_literal(term)
        case BlankNode():
            raise ValueError("a blank node has no name outside its document")


def _write_literal(literal: Literal) -> str:
    if literal.direction is not None:
        raise ValueError("SPARQL 1.1 has no literals with a direction")
    if literal.language is not None:
        written = str(Literal(literal.value, language=literal.language))
    else:
        written = str(Literal(literal.value, datatype=NamedNode(literal.datatype.value)))
    return _ESCAPE.sub(_escaped, written)


def _escaped(match: re.Match[str]) -> str:
    letter = match["u"]
    return match[0] if letter is None else rf"\\\u00{ord(letter):02X}"


def key_fault(key: Key, most_bytes: int = MOST_BYTES) -> str | None:
    """Return the fault of a key that no request can hold, else None.

    >>> key_fault((NamedNode("http://example.org/a"), BlankNode("b")))
    'blank node key'
    """
    if any(isinstance(term, BlankNode) for term in key):
        return BLANK_NODE_KEY
    try:
        return LONG_KEY if len(_row(key, 0).encode()) > most_bytes else None
    except ValueError:
        return WRONG_KEY


def place_variable(pattern: RemotePattern) -> str:
    """Return a variable that does not occur in the clause."""
    name = "place"
    while name in pattern.body or name in pattern.keys or name in pattern.variables:
        name += "_"
    return name


def batch_of(pattern: RemotePattern, keys: Sequence[Key]) -> KeyBatch:
    """Return the request for keys, none of them `key_fault`.

    >>> from rsp_engine.replica.pattern import RemotePattern
    >>> pattern = RemotePattern("http://e.org/s", "{ ?k <http://e.org/p> ?v }", ("k",), ("v",))
    >>> print(batch_of(pattern, [(Literal("a"),)]).text)
    SELECT ?place ?v WHERE { VALUES (?place ?k) {
    (0 "a")
    } { ?k <http://e.org/p> ?v } }
    """
    place = place_variable(pattern)
    head = _variables((place, *pattern.variables))
    block = "\n".join(_row(key, index) for index, key in enumerate(keys))
    names = _variables((place, *pattern.keys))
    text = f"SELECT {head} WHERE {{ VALUES ({names}) {{\n{block}\n}} {pattern.body} }}"
    return KeyBatch(text, place, tuple(keys))


def batches(
    pattern: RemotePattern,
    keys: Iterable[Key],
    most_keys: int = MOST_KEYS,
    most_bytes: int = MOST_BYTES,
) -> Iterator[KeyBatch]:
    """Split keys into batches of at most `most_keys` keys and `most_bytes` bytes of VALUES."""
    batch: list[Key] = []
    size = 0
    for key in dict.fromkeys(keys):
        row_size = len(_row(key, most_keys).encode()) + 1
        if batch and (len(batch) == most_keys or size + row_size > most_bytes):
            yield batch_of(pattern, batch)
            batch, size = [], 0
        batch.append(key)
        size += row_size
    if batch:
        yield batch_of(pattern, batch)


def whole_text(pattern: RemotePattern) -> str:
    """Return the request for the whole clause, keys first."""
    head = _variables((*pattern.keys, *pattern.variables)) or "*"
    return f"SELECT {head} WHERE {pattern.body}"


COUNT = "rsp_rows"
"""The variable of the number of rows in the answer to `count_text`."""


def count_text(pattern: RemotePattern) -> str:
    """Return the request for the number of rows of the whole clause.

    >>> from rsp_engine.replica.pattern import RemotePattern
    >>> count_text(RemotePattern("http://e.org/s", "{ ?k <http://e.org/p> ?v }", ("k",), ("v",)))
    'SELECT (COUNT(*) AS ?rsp_rows) WHERE { ?k <http://e.org/p> ?v }'
    """
    return f"SELECT (COUNT(*) AS ?{COUNT}) WHERE {pattern.body}"


def page_text(pattern: RemotePattern, limit: int, offset: int, *, is_nested: bool = False) -> str:
    """Return the request for a page of the whole clause; the rows of a key are adjacent.

    Some servers limit the number of rows that they sort for a page. With `is_nested`, a subquery
    makes them sort all rows before they cut the page.
    """
    head = _variables((*pattern.keys, *pattern.variables))
    ordered = whole_text(pattern) + (f" ORDER BY {head}" if head else "")
    if is_nested:
        ordered = f"SELECT {head or '*'} WHERE {{ {{ {ordered} }} }}"
    return f"{ordered} LIMIT {int(limit)} OFFSET {int(offset)}"


def _row(key: Key, index: int) -> str:
    return f"({' '.join((str(index), *map(write_term, key)))})"


def _variables(names: Iterable[str]) -> str:
    return " ".join(str(Variable(name)) for name in names)
