"""JSON text, made by joining pieces: what jsonl and sparql-json have in common.

https://www.w3.org/TR/sparql11-results-json/
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.runtime.sinks.terms import XSD_STRING, Term, TermTexts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.answers import Interval, Solutions

__all__ = ["BindingsJson", "json_text", "term_json", "window_json"]

json_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""Write a value as compact JSON."""


def term_json(term: Term) -> str:
    """Write a term as a SPARQL result in JSON does.

    >>> print(term_json(Literal("chat", language="fr")))
    {"type":"literal","value":"chat","xml:lang":"fr"}
    """
    value = json_text(term.value)
    match term:
        case NamedNode():
            return f'{{"type":"uri","value":{value}}}'
        case BlankNode():
            return f'{{"type":"bnode","value":{value}}}'
        case Literal():
            return f'{{"type":"literal","value":{value}{_kind_of_literal(term)}}}'
        case _:
            assert_never(term)


def _kind_of_literal(literal: Literal) -> str:
    if literal.language is not None:
        language = f',"xml:lang":{json_text(literal.language)}'
        if literal.direction is None:
            return language
        return f'{language},"its:dir":{json_text(literal.direction.value)}'  # SPARQL 1.2
    datatype = literal.datatype.value
    return "" if datatype == XSD_STRING else f',"datatype":{json_text(datatype)}'


def window_json(window: Interval) -> str:
    """Write a window.

    >>> from rsp_engine.model.answers import Interval
    >>> window_json(Interval(0, 5000))
    '{"open":0,"close":5000}'
    """
    return f'{{"open":{window.open},"close":{window.close}}}'


class BindingsJson:
    """It writes the bindings of solutions: in the order of the projection, no unbound variable."""

    def __init__(self) -> None:
        self._texts = TermTexts(term_json)
        self._before: tuple[Solutions | None, dict[int, str]] = None, {}

    def __call__(self, solutions: Solutions) -> list[str]:
        """Return the text of each row. A row that the answer before had is not written anew."""
        _, known = self._before
        keys = [(name, f"{json_text(name)}:") for name in solutions.variables]
        written, texts = {}, []
        for terms, _, _ in solutions.rows:
            identity = id(terms)
            text = known.get(identity) or self._text(terms, keys)
            written[identity] = text
            texts.append(text)
        # The rows are kept as well, so that no other can have the identity of one of them.
        self._before = solutions, written
        return texts

    def _text(self, terms: Mapping[str, Term], keys: Sequence[tuple[str, str]]) -> str:
        pieces = [key + self._texts[terms[name]] for name, key in keys if name in terms]
        return "{" + ",".join(pieces) + "}"
