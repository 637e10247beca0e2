"""Name resolution: the declarations of BASE and PREFIX, and the IRIs of names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.errors import Diagnostic, Span
from rsp_engine.grammar.iris import resolve
from rsp_engine.grammar.parser.escapes import undo_local_escapes
from rsp_engine.grammar.tree import BaseDecl, Iri, PrefixDecl

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Names"]

# The namespaces that a hint suggests for an undeclared prefix.
_WELL_KNOWN = {
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "https://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


class Names:
    """The names of one query. A prefix may be used before its declaration after REGISTER."""

    def __init__(self) -> None:
        self.declarations: list[BaseDecl | PrefixDecl] = []
        self._base: str | None = None
        self._prefixes: dict[str, str] = {}
        self._unknown: dict[str, Span] = {}

    def declare_base(self, reference: str, iri_span: Span, span: Span) -> None:
        """Add a BASE; it may be relative to the previous one."""
        iri = self.iri(reference, iri_span)
        self._base = iri.value
        self.declarations.append(BaseDecl(iri, span=span))

    def declare_prefix(self, name: str, reference: str, iri_span: Span, span: Span) -> None:
        """Add a PREFIX; it replaces an earlier one of the same name."""
        iri = self.iri(reference, iri_span)
        prefix = name.removesuffix(":")
        self._prefixes[prefix] = iri.value
        self.declarations.append(PrefixDecl(prefix, iri, span=span))

    def iri(self, reference: str, span: Span) -> Iri:
        """Return the IRI of `<reference>`."""
        reference = reference[1:-1]
        return Iri(reference if self._base is None else resolve(self._base, reference), span=span)

    def prefixed(self, name: str, span: Span) -> Iri:
        """Return the IRI of `prefix:local`; record an undeclared prefix once."""
        prefix, _, local = name.partition(":")
        namespace = self._prefixes.get(prefix)
        if namespace is None:
            self._unknown.setdefault(prefix, span)
            namespace = f"{prefix}:"
        return Iri(namespace + undo_local_escapes(local), span=span)

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield an error for each undeclared prefix, at its first use."""
        for prefix, span in self._unknown.items():
            message = f"prefix `{prefix}:` is not declared"
            yield Diagnostic("syntax", message, span, self._hint(prefix))

    def _hint(self, prefix: str) -> str:
        close = get_close_matches(prefix, self._prefixes, n=1)
        if close and prefix not in _WELL_KNOWN:
            return f"did you mean `{close[0]}:`?"
        iri = _WELL_KNOWN.get(prefix, "http://...")
        return f"declare it before it is used: PREFIX {prefix}: <{iri}>"
