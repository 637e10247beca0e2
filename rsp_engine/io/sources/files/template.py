"""Templates: Turtle with `{field}` placeholders, filled in for each row or message.

    <http://example.org/user/{user_id}> <http://example.org/mentions> "{n}"^^xsd:integer .

The template is parsed once, with a safe word in place of each field. Values are put into the
resulting terms, never into the text: percent-encoded in an IRI, unchanged in a literal. A value can
therefore never change the structure of a triple. A triple with an empty value is left out. Double a
brace to write it literally. The prefixes rdf, rdfs and xsd are predefined.

What the name of a field means is left to its reader: a column of a table (`table_template`), or a
path in a message (`message_template`). Here fields are numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

import pyoxigraph as ox

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.files.rdf import MalformedRdfError, graph_of
from rsp_engine.io.sources.spec import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rsp_engine.io.sources.spec import Spec

__all__ = [
    "FieldValues",
    "FilledTriple",
    "Template",
    "WrittenTriple",
    "encode_for_iri",
    "escape_literal",
    "table_template",
    "template_of",
]

FieldValues: TypeAlias = "Sequence[str] | Mapping[int, str]"
Term: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
Fill: TypeAlias = "Callable[[FieldValues], Any]"  # returns a term that is valid in its position

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}\r\n]+)\}|[{}]")
_PREFIXES = (
    "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . "
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
)
_ESCAPES = {ord(c): f"\\{e}" for c, e in zip('"\\\n\r\t\b\f', '"\\nrtbf', strict=True)}
_ESCAPES = {c: f"\\u{c:04X}" for c in (*range(32), 127)} | _ESCAPES
_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS = {ox.NamedNode(_XSD + name) for name in ("decimal", "double", "float")}
_WHERE = "use a field in an IRI, after its start, or in a literal, between its quotes"
_LARGEST_TEMPLATE = 2 << 20


SlotKind: TypeAlias = Literal["iri", "number", "text"]
"""Where the text of a field goes: into an IRI, or a literal, perhaps as the whole of a number."""


class WrittenTriple(NamedTuple):
    """One triple of a template as a line of N-Triples, with `%s` where the text of a field goes."""

    form: str
    slots: tuple[tuple[int, SlotKind], ...]
    """Each field, and where its text goes."""


@dataclass(frozen=True, slots=True)
class FilledTriple:
    """One triple of a template: how to fill its terms, and the fields it uses."""

    fields: tuple[int, ...]
    subject: Fill
    predicate: Fill
    object: Fill
    written: WrittenTriple | None = None
    """How to write it; None if it has other terms than IRIs and literals."""

    def triple(self, row: FieldValues) -> ox.Triple:
        """Return the triple of a row; raise `ValueError` if a value makes an IRI invalid."""
        return ox.Triple(self.subject(row), self.predicate(row), self.object(row))


class Template:
    """A parsed template, which turns a row into triples.

    >>> template = table_template("<urn:{a}> rdfs:label '{b}'@en .", ["a", "b"], "t.ttl")
    >>> print(*template.triples(["x/y", "says 'hi'"]))
    <urn:x%2Fy> <http://www.w3.org/2000/01/rdf-schema#label> "says 'hi'"@en
    >>> template.triples(["x/y", ""])
    ()
    """

    def __init__(self, text: str, name: str, number_of: Callable[[str], int]) -> None:
        """Parse a text; `number_of` returns the number of a field, or raises `SourceError`."""
        self._name = name
        self._number_of = number_of
        self._mark = _unused_word(text)
        self._token = re.compile(f"{self._mark}([0-9]+)z")
        self.datatypes: dict[int, str] = {}
        """The datatypes of fields that are whole literals."""
        self.patterns = [self._pattern(triple) for triple in self._parse(text)]

    def triples(self, row: Sequence[str]) -> tuple[ox.Triple, ...]:
        """Return the triples of a row; raise `ValueError` if a value makes an IRI invalid."""
        patterns = self.patterns
        if "" in row:
            patterns = [p for p in patterns if all(row[field] for field in p.fields)]
        return tuple(dict.fromkeys([pattern.triple(row) for pattern in patterns]))

    def _parse(self, text: str) -> tuple[ox.Triple, ...]:
        safe = _BRACES.sub(self._word_for, text)
        try:
            triples = graph_of((_PREFIXES + safe).encode(), ox.RdfFormat.TURTLE)
        except MalformedRdfError as error:
            raise SourceError(
                f"{self._name}: the template is not Turtle: {error}", _WHERE
            ) from None
        if not triples:
            raise SourceError(f"{self._name}: the template holds no triple", "write one per fact")
        return triples

    def _word_for(self, braces: re.Match[str]) -> str:
        if braces[0] in ("{{", "}}"):
            return braces[0][0]
        if braces[1] is None:
            message = f"{self._name}: the template has an unmatched brace"
            raise SourceError(message, "write {field}, or double a literal brace")
        return f"{self._mark}{self._number_of(braces[1])}z"

    def _pattern(self, triple: ox.Triple) -> FilledTriple:
        fields = {int(index) for index in self._token.findall(str(triple))}
        terms = (triple.subject, triple.predicate, triple.object)
        subject, predicate, value = map(self._fill, terms)
        written = self._write(terms)
        return FilledTriple(tuple(sorted(fields)), subject, predicate, value, written)

    def _write(self, terms: tuple[Term, ...]) -> WrittenTriple | None:
        """Return how to write a triple; None if that depends on more than the texts of fields."""
        texts: list[str] = []
        slots: list[tuple[int, SlotKind]] = []
        for term in terms:
            start, *rest = self._token.split(str(term))
            match term:
                case ox.NamedNode() if not rest or ":" in start:  # not every text makes a scheme
                    kind: SlotKind = "iri"
                case ox.Literal():
                    is_whole = self._token.fullmatch(term.value) is not None
                    kind = "number" if is_whole and term.datatype in _NUMBERS else "text"
                case _:
                    return None
            slots += [(int(field), kind) for field in rest[::2]]
            texts.append("%s".join(text.replace("%", "%%") for text in (start, *rest[1::2])))
        return WrittenTriple(f"{' '.join(texts)} .\n", tuple(slots))

    def _fill(self, term: Term) -> Fill:
        """Return a function from a row to the term that a template term becomes."""
        if self._token.search(str(term)) is None:
            return lambda _: term
        match term:
            case ox.NamedNode():
                return _fill_iri(self._split(term.value))
            case ox.Literal() if self._token.search(f"{term.datatype} {term.language}") is None:
                if (whole := self._token.fullmatch(term.value)) and not term.language:
                    self.datatypes[int(whole[1])] = term.datatype.value
                return _fill_literal(self._split(term.value), term)
            case ox.Triple():
                fills = [self._fill(part) for part in (term.subject, term.predicate, term.object)]
                return lambda row: ox.Triple(*(fill(row) for fill in fills))
            case _:
                message = f"{self._name}: a field is used in a datatype, a language or a label"
                raise SourceError(message, _WHERE)

    def _split(self, text: str) -> tuple[list[str], list[int]]:
        """Return the constant texts of a template term, and the fields between them."""
        parts = self._token.split(text)
        return parts[::2], [int(index) for index in parts[1::2]]


def _fill_iri(parts: tuple[list[str], list[int]]) -> Fill:
    (start, *rest), columns = parts
    pairs = list(zip(columns, rest, strict=True))

    def fill(row: FieldValues) -> Term:
        return ox.NamedNode(start + "".join([encode_for_iri(row[c]) + text for c, text in pairs]))

    return fill


def _fill_literal(parts: tuple[list[str], list[int]], term: ox.Literal) -> Fill:
    (start, *rest), columns = parts
    pairs = list(zip(columns, rest, strict=True))
    kind = {"language": term.language} if term.language else {"datatype": term.datatype}

    def fill(row: FieldValues) -> Term:
        return ox.Literal(start + "".join([row[c] + text for c, text in pairs]), **kind)

    return fill


def encode_for_iri(value: str) -> str:
    """Return a text as a part of an IRI."""
    return value if value.isascii() and value.isalnum() else quote(value, safe="")


def escape_literal(value: str) -> str:
    r"""Return a text as it is written between the quotes of a literal.

    >>> print(escape_literal('a "b"\n'))
    a \"b\"\n
    """
    return value.translate(_ESCAPES)


def _unused_word(text: str) -> str:
    """Return a lower-case word that does not occur in a text."""
    lower = text.lower()
    return next(word for word in ("field" + "x" * n for n in count()) if word not in lower)


def table_template(text: str, columns: Sequence[str], name: str) -> Template:
    """Return the template of a table, whose fields are columns."""

    def number_of(column: str) -> int:
        if column not in columns:
            message = f"{name}: the template names {column}, which is not a column"
            known = f"the columns are: {', '.join(columns)}"
            raise SourceError(message, nearest(column, columns) or known)
        if columns.count(column) > 1:
            message = f"{name}: several columns have the name {column}"
            raise SourceError(message, "name each column once")
        return columns.index(column)

    return Template(text, name, number_of)


def template_of(spec: Spec) -> tuple[Path, str]:
    """Return the file of the template that a source names, and its text."""
    if "template" not in spec.options:
        hint = "add ?template=FILE, a Turtle text with {field} where the value of a field goes"
        raise SourceError(f"{spec.name}: this format needs a template", hint)
    path = Path(spec.options["template"])
    return path, _read(path)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST_TEMPLATE + 1)
        if len(data) > _LARGEST_TEMPLATE:
            raise SourceError(f"{path}: a template cannot be larger than 2 MB")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{path}: the template is not UTF-8", "save it as UTF-8") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise SourceError(f"{path}: the template cannot be read: {reason}") from None
