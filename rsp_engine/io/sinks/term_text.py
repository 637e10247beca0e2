"""Terms, scores, bindings and windows as text and as JSON, shared by the output formats."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from functools import lru_cache
from json.encoder import encode_basestring
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, assert_never, cast

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.model.terms.term import Term
from rsp_engine.model.terms.xsd import XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rsp_engine.model.answers import Interval, Solutions

__all__ = ["BindingsJson", "TermTexts", "iso_time", "json_text", "score_text", "window_json"]

_EPOCH = datetime(1970, 1, 1)


class TermTexts(dict[Term, str]):
    """A bounded cache of the texts of terms.

    Answers repeat their terms from row to row and from window to window. The cache has at most
    `most` entries, none longer than `longest` characters, and is cleared when it is full.

    >>> from pyoxigraph import NamedNode
    >>> texts = TermTexts(str)
    >>> texts[NamedNode("http://example.org/a")]
    '<http://example.org/a>'
    >>> len(texts)
    1
    """

    def __init__(
        self, write: Callable[[Term], str], most: int = 65_536, longest: int = 1_000
    ) -> None:
        super().__init__()
        self._write = write
        self._most = most
        self._longest = longest

    def __missing__(self, term: Term) -> str:
        text = self._write(term)
        if len(text) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[term] = text
        return text


def score_text(score: float) -> str:
    """Return a score in the lexical form of xsd:double, with digits that round-trip exactly.

    >>> score_text(0.1), score_text(float("inf")), score_text(float("-inf"))
    ('0.1', 'INF', '-INF')
    """
    if math.isfinite(score):
        return repr(float(score))
    if math.isnan(score):
        return "NaN"
    return "INF" if score > 0 else "-INF"


Bindings: TypeAlias = "Mapping[str, Term]"
_BINDINGS = attrgetter("bindings")
json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Serialize a value as compact JSON."""


def term_json(term: Term) -> str:
    """Serialize a term as in SPARQL 1.1 Query Results JSON.

    >>> print(term_json(Literal("chat", language="fr")))
    {"type":"literal","value":"chat","xml:lang":"fr"}
    """
    match term:
        case Literal():
            return _literal_json(term)
        case NamedNode():
            return f'{{"type":"uri","value":{json_text(term.value)}}}'
        case BlankNode():
            return f'{{"type":"bnode","value":{json_text(term.value)}}}'
        case _:
            assert_never(term)


def _literal_json(literal: Literal) -> str:
    value, language = encode_basestring(literal.value), literal.language
    kind = _datatype(literal.datatype.value) if language is None else _language(literal, language)
    return f'{{"type":"literal","value":{value}{kind}}}'


def _language(literal: Literal, language: str) -> str:
    tag = f',"xml:lang":{json_text(language)}'
    if literal.direction is None:
        return tag
    return f'{tag},"its:dir":{json_text(literal.direction.value)}'  # SPARQL 1.2


@lru_cache(maxsize=1_000)
def _datatype(iri: str) -> str:
    return "" if iri == XSD_STRING else f',"datatype":{json_text(iri)}'


def window_json(window: Interval, time: Callable[[int], str] = str) -> str:
    """Serialize a window; `time` serializes its edges.

    >>> from rsp_engine.model.answers import Interval
    >>> window_json(Interval(0, 5000))
    '{"open":0,"close":5000}'
    """
    return f'{{"open":{time(window.open)},"close":{time(window.close)}}}'


def iso_time(milliseconds: int) -> str:
    """Return a time in ISO 8601; a number if the calendar has no such day.

    >>> iso_time(1_709_283_610_000), iso_time(1), iso_time(10**17)
    ('2024-03-01T09:00:10Z', '1970-01-01T00:00:00.001Z', '100000000000000000')
    """
    try:
        instant = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)
    digits = "milliseconds" if milliseconds % 1000 else "seconds"
    return f"{instant.isoformat(timespec=digits)}Z"


class BindingsJson:
    """Serializes bindings in the order of the projection, without unbound variables.

    Windows overlap, and operators return the same row object again, so the text of each row is
    cached by the identity of its bindings. The bindings are kept alive with it, so that no other
    object can reuse the identity. Memory: at most twice as many rows as the last answer has.
    """

    def __init__(self) -> None:
        self._nodes = TermTexts(term_json)
        self._rows: list[Bindings] = []
        self._texts: dict[int, str] = {}

    def __call__(self, solutions: Solutions) -> list[str]:
        """Return the text of each row."""
        rows = list(map(_BINDINGS, solutions.rows))
        texts = list(map(self._texts.get, map(id, rows)))
        self._fill_in(rows, texts, solutions.variables)
        complete = cast("list[str]", texts)
        if len(self._texts) > 2 * len(rows):
            self._rows, self._texts = rows, dict(zip(map(id, rows), complete, strict=True))
        return complete

    def _fill_in(
        self, rows: Sequence[Bindings], texts: list[str | None], variables: Sequence[str]
    ) -> None:
        """Serialize and cache the rows that are not cached yet."""
        keys = [(name, f"{json_text(name)}:") for name in variables]
        for index in [index for index, text in enumerate(texts) if text is None]:
            row = rows[index]
            texts[index] = self._texts[id(row)] = self._text(row, keys)
            self._rows.append(row)

    def _text(self, terms: Bindings, keys: Sequence[tuple[str, str]]) -> str:
        nodes = self._nodes
        pieces = [
            # Literals seldom repeat between rows: caching them costs more than serializing them.
            key + (_literal_json(term) if isinstance(term, Literal) else nodes[term])
            for name, key in keys
            if (term := terms.get(name)) is not None
        ]
        return "{" + ",".join(pieces) + "}"
