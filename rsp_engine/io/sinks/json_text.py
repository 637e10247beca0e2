"""JSON text, made by joining pieces: what jsonl and sparql-json have in common.

https://www.w3.org/TR/sparql11-results-json/
"""

from __future__ import annotations

import json
from functools import lru_cache
from json.encoder import encode_basestring
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, assert_never, cast

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.io.sinks.terms import TermTexts
from rsp_engine.model.terms.term import XSD_STRING, Term

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.answers import Interval, Solutions

__all__ = ["BindingsJson", "json_text", "term_json", "window_json"]

Bindings: TypeAlias = "Mapping[str, Term]"
_BINDINGS = attrgetter("bindings")
json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Write a value as compact JSON."""


def term_json(term: Term) -> str:
    """Write a term as a SPARQL result in JSON does.

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


def window_json(window: Interval) -> str:
    """Write a window.

    >>> from rsp_engine.model.answers import Interval
    >>> window_json(Interval(0, 5000))
    '{"open":0,"close":5000}'
    """
    return f'{{"open":{window.open},"close":{window.close}}}'


class BindingsJson:
    """It writes the bindings of solutions: in the order of the projection, no unbound variable.

    Windows overlap, and operators give out a row again as the same object: its text is then known.
    Memory: of at most twice as many rows as an answer has. They are kept themselves as well, so
    that no other can have the identity of one of them.
    """

    def __init__(self) -> None:
        self._nodes = TermTexts(term_json)
        self._kept: list[Bindings] = []
        self._known: dict[int, str] = {}

    def __call__(self, solutions: Solutions) -> list[str]:
        """Return the text of each row."""
        rows = list(map(_BINDINGS, solutions.rows))
        texts = list(map(self._known.get, map(id, rows)))
        self._learn(rows, texts, solutions.variables)
        written = cast("list[str]", texts)
        if len(self._known) > 2 * len(rows):
            self._kept, self._known = rows, dict(zip(map(id, rows), written, strict=True))
        return written

    def _learn(
        self, rows: Sequence[Bindings], texts: list[str | None], variables: Sequence[str]
    ) -> None:
        """Write the rows that are not known yet."""
        keys = [(name, f"{json_text(name)}:") for name in variables]
        for place in [place for place, text in enumerate(texts) if text is None]:
            row = rows[place]
            texts[place] = self._known[id(row)] = self._text(row, keys)
            self._kept.append(row)

    def _text(self, terms: Bindings, keys: Sequence[tuple[str, str]]) -> str:
        nodes = self._nodes
        pieces = [
            # A literal seldom comes again in another row: to remember it costs more than writing.
            key + (_literal_json(term) if isinstance(term, Literal) else nodes[term])
            for name, key in keys
            if (term := terms.get(name)) is not None
        ]
        return "{" + ",".join(pieces) + "}"
