"""RDF terms as SPARQL text: the only place that writes terms into queries.

A term from a stream or a server can hold any characters. The functions here write text that parses
back to the same term, so that no term can end early and inject text into the query around it. They
raise `ValueError` for a term that cannot be written.
"""

from __future__ import annotations

import re
from functools import cache

from rsp_engine.model.terms.xsd import XSD, XSD_STRING

__all__ = ["blank_node_text", "iri_text", "literal_text", "string_text", "variable_text"]

_IRI = re.compile(r'[^\x00-\x20<>"{}|^`\\\ud800-\udfff]*')
_LANGUAGE = re.compile(r"[A-Za-z]+(-[0-9A-Za-z]+)*")
# PN_CHARS_U of the SPARQL 1.1 grammar, and what PN_CHARS adds to it besides digits and the hyphen.
_LETTER = (
    r"A-Z_a-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D"
    r"\u2070-\u218F\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_LATER = r"\u00B7\u0300-\u036F\u203F\u2040"
_LABEL = f"[0-9{_LETTER}](?:[-.0-9{_LETTER}{_LATER}]*[-0-9{_LETTER}{_LATER}])?"
_VARIABLE = f"[0-9{_LETTER}][0-9{_LETTER}{_LATER}]*"
_PLAIN_NAME = re.compile("[0-9A-Z_a-z]+")
"""Most names. The expressions of all others are compiled at their first use, which takes long."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ESCAPED = re.compile(r'["\x00-\x1f\x7f]|\\[uU]?')
_ESCAPES = {'"': '\\"', "\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
# The lexical forms that SPARQL reads without quotes as literals of these datatypes.
_BARE = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}


def iri_text(value: str) -> str:
    """Write an IRI.

    >>> iri_text("http://example.org/a")
    '<http://example.org/a>'
    >>> iri_text("http://example.org/> . } #")
    Traceback (most recent call last):
    ValueError: not an IRI: 'http://example.org/> . } #'
    """
    if _IRI.fullmatch(value) is None:
        raise ValueError(f"not an IRI: {value!r}")
    return f"<{value}>"


def string_text(value: str) -> str:
    r"""Write a string in double quotes.

    A `u` after a backslash is escaped too, so that no parser takes the two for a code point escape.

    >>> print(string_text('say "hi"\n'), string_text("\\u0041"))
    "say \"hi\"\n" "\\\u00750041"
    """
    if _SURROGATE.search(value):
        raise ValueError(f"not text: {value!r} holds half a character")
    return f'"{_ESCAPED.sub(_escape, value)}"'


def _escape(match: re.Match[str]) -> str:
    special = match[0]
    if special[0] == "\\":
        return "\\\\" + "".join(f"\\u{ord(c):04x}" for c in special[1:])
    return _ESCAPES.get(special) or f"\\u{ord(special):04x}"


def literal_text(lexical: str, datatype: str = XSD_STRING, language: str | None = None) -> str:
    """Write a literal; a number or a boolean without quotes if that parses to the same literal.

    >>> print(literal_text("7", "http://www.w3.org/2001/XMLSchema#integer"))
    7
    >>> print(literal_text("chat", language="fr"))
    "chat"@fr
    """
    if language is not None:
        if _LANGUAGE.fullmatch(language) is None:
            raise ValueError(f"not a language tag: {language!r}")
        return f"{string_text(lexical)}@{language}"
    if datatype == XSD_STRING:
        return string_text(lexical)
    if datatype in _BARE and _BARE[datatype].fullmatch(lexical):
        return lexical
    return f"{string_text(lexical)}^^{iri_text(datatype)}"


def blank_node_text(label: str) -> str:
    """Write a blank node.

    >>> blank_node_text("b0")
    '_:b0'
    """
    if not _matches(_LABEL, label):
        raise ValueError(f"not a blank node label: {label!r}")
    return f"_:{label}"


def variable_text(name: str) -> str:
    """Write a variable.

    >>> variable_text("score")
    '?score'
    """
    if not _matches(_VARIABLE, name):
        raise ValueError(f"not a variable: {name!r}")
    return f"?{name}"


def _matches(expression: str, name: str) -> bool:
    """Return whether a name is plain, or matches an expression."""
    if _PLAIN_NAME.fullmatch(name) is not None:
        return True
    return _compiled(expression).fullmatch(name) is not None


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)
