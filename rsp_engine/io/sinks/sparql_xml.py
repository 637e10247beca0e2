"""SPARQL Query Results XML: one document per window, each with its XML declaration.

https://www.w3.org/TR/rdf-sparql-XMLres/

The standard has no windows, so a comment at the top states the open and the close. XML 1.0 cannot
represent most control characters; an answer that contains one is refused. No document is written
for an ASK about which ISTREAM or DSTREAM reports nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.format import SinkFormat, misfit
from rsp_engine.io.sinks.term_text import TermTexts
from rsp_engine.model.answers import Boolean, Solutions
from rsp_engine.model.terms.xsd import XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.answers import Answer, Row
    from rsp_engine.model.terms.term import Term

__all__ = ["SPARQL_XML", "SparqlXml", "term_xml"]

# XML readers turn a bare carriage return into a line feed, and some trim space around a value.
_SPECIAL = re.compile(
    r'[&<>"\r\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\A[ \t\n]+|(?<![ \t\n])[ \t\n]+\Z'
)
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_ITS = 'xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0"'


def term_xml(term: Term) -> str:
    """Serialize a term as in SPARQL Query Results XML.

    >>> print(term_xml(Literal(" R&B", language="en")))
    <literal xml:lang="en">&#32;R&amp;B</literal>
    """
    value = _escaped(term.value)
    match term:
        case NamedNode():
            return f"<uri>{value}</uri>"
        case BlankNode():
            return f"<bnode>{value}</bnode>"
        case Literal():
            return f"<literal{_literal_attributes(term)}>{value}</literal>"
        case _:
            assert_never(term)


def _literal_attributes(literal: Literal) -> str:
    if literal.language is not None:
        language = f' xml:lang="{_escaped(literal.language)}"'
        if literal.direction is None:
            return language
        return f'{language} {_ITS} its:dir="{literal.direction.value}"'  # SPARQL 1.2
    datatype = literal.datatype.value
    return "" if datatype == XSD_STRING else f' datatype="{_escaped(datatype)}"'


def _escaped(text: str) -> str:
    return _SPECIAL.sub(_references, text)


def _references(match: re.Match[str]) -> str:
    return "".join(_NAMED.get(character) or _reference(character) for character in match[0])


def _reference(character: str) -> str:
    if character not in " \t\n\r":
        message = f"XML cannot hold the character U+{ord(character):04X} of an answer"
        raise SinkError(message, "use sparql-json, which can")
    return f"&#{ord(character)};"


class SparqlXml:
    """Serializes answers as XML documents.

    >>> from rsp_engine.model.answers import Answer, Interval
    >>> print(SparqlXml()(Answer("q", Interval(0, 5), Boolean(True), {})), end="")
    <?xml version="1.0" encoding="UTF-8"?>
    <!-- window 0 5 -->
    <sparql xmlns="http://www.w3.org/2005/sparql-results#">
    <head/>
    <boolean>true</boolean>
    </sparql>
    """

    def __init__(self) -> None:
        self._texts = TermTexts(term_xml)

    def __call__(self, answer: Answer) -> str:
        """Return the document of an answer."""
        match answer.content:
            case Solutions() as solutions:
                lines = self._table(solutions)
            case Boolean(None):
                return ""
            case Boolean(value):
                lines = iter(("<head/>", f"<boolean>{'true' if value else 'false'}</boolean>"))
            case content:
                raise misfit("sparql-xml", content)
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<!-- window {answer.window.open} {answer.window.close} -->\n"
            '<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
            + "\n".join(lines)
            + "\n</sparql>\n"
        )

    def _table(self, solutions: Solutions) -> Iterator[str]:
        names = [(name, _escaped(name)) for name in solutions.variables]
        yield "<head>" + "".join(f'<variable name="{text}"/>' for _, text in names) + "</head>"
        yield "<results>"
        tags = [(name, f'<binding name="{text}">') for name, text in names]
        yield from (self._result(row, tags) for row in solutions.rows)
        yield "</results>"

    def _result(self, row: Row, tags: list[tuple[str, str]]) -> str:
        terms, texts = row.bindings, self._texts
        bound = [f"{tag}{texts[terms[name]]}</binding>" for name, tag in tags if name in terms]
        return f"<result>{''.join(bound)}</result>"


SPARQL_XML = SinkFormat(
    "sparql-xml",
    "SPARQL 1.1 results in XML, one document a window",
    ("SELECT", "ASK"),
    SparqlXml,
    suffix=".srx",
    media_type="application/sparql-results+xml",
)
