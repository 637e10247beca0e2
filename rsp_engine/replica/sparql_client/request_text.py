"""The text of a request.

Keys travel in a VALUES block, each with its place in the batch, and the answer gives the place
back: a server may write a number or a language tag in another way than it was asked for. The group
of the SERVICE clause stands beside the block as it is, so whatever it holds means what it meant.

Terms come from streams and can be hostile. Each is built anew, which validates it, and written by
pyoxigraph; what cannot be written is never asked for.
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
    "page_text",
    "place_variable",
    "unaskable",
    "whole_text",
    "write_term",
]

BLANK_NODE_KEY = "blank node key"
LONG_KEY = "key too long"
WRONG_KEY = "key that cannot be written"

MOST_KEYS = 100
MOST_BYTES = 64 * 1024

_ESCAPE = re.compile(r"\\\\(?P<u>[uU])|\\.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyBatch:
    """A request for some keys. `place` is the variable that tells the place of a row's key."""

    text: str
    place: str
    keys: tuple[Key, ...]


def write_term(term: Term) -> str:
    r"""Write an IRI or a literal as SPARQL 1.1; what is neither, or not valid, is a `ValueError`.

    >>> print(write_term(Literal('" } #', language="en")))
    "\" } #"@en

    Some servers undo `\u` before they read the text, even behind an escaped backslash. So the
    letter after one is escaped itself, which means the same to all of them.

    >>> print(write_term(Literal(r"\u0022")))
    "\\\u00750022"
    """
    match term:
        case NamedNode():
            return str(NamedNode(term.value))
        case Literal():
            return _write_literal(term)
        case BlankNode():
            raise ValueError("a blank node has no name outside of its document")


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


def unaskable(key: Key, most_bytes: int = MOST_BYTES) -> str | None:
    """Say why a key can never be asked for, if so.

    >>> unaskable((NamedNode("http://example.org/a"), BlankNode("b")))
    'blank node key'
    """
    if any(isinstance(term, BlankNode) for term in key):
        return BLANK_NODE_KEY
    try:
        return LONG_KEY if len(_row(key, 0).encode()) > most_bytes else None
    except ValueError:
        return WRONG_KEY


def place_variable(pattern: RemotePattern) -> str:
    """Return a variable that the clause does not have."""
    name = "place"
    while name in pattern.body or name in pattern.keys or name in pattern.variables:
        name += "_"
    return name


def batch_of(pattern: RemotePattern, keys: Sequence[Key]) -> KeyBatch:
    """Ask for some keys, all of which can be asked for.

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
    """Cut keys into batches: so many keys, or so many bytes of VALUES, whichever is less."""
    held: list[Key] = []
    size = 0
    for key in dict.fromkeys(keys):
        more = len(_row(key, most_keys).encode()) + 1
        if held and (len(held) == most_keys or size + more > most_bytes):
            yield batch_of(pattern, held)
            held, size = [], 0
        held.append(key)
        size += more
    if held:
        yield batch_of(pattern, held)


def whole_text(pattern: RemotePattern) -> str:
    """Ask for everything, keys first."""
    head = _variables((*pattern.keys, *pattern.variables)) or "*"
    return f"SELECT {head} WHERE {pattern.body}"


def page_text(pattern: RemotePattern, limit: int, offset: int, *, is_nested: bool = False) -> str:
    """Ask for a page of everything; the rows of a key stand together.

    Some servers sort only so many rows for a page. Nested, they sort all, and cut the page after.
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
