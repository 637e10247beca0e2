"""The W3C syntax tests of the SPARQL 1.1 query language, read from their manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox

from tests.data import real_data

if TYPE_CHECKING:
    from pathlib import Path

_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_RDF_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def syntax_tests(kind: str) -> list[Path]:
    """Return the query files of the `Positive` or the `Negative` tests."""
    folder = real_data("w3c/sparql/sparql11/syntax-query")
    manifest = ox.Store()
    manifest.load(path=folder / "manifest.ttl", base_iri="http://w3c.test/")
    cases = manifest.quads_for_pattern(None, _RDF_TYPE, ox.NamedNode(f"{_MF}{kind}SyntaxTest11"))
    actions = [
        action.object
        for case in cases
        for action in manifest.quads_for_pattern(case.subject, ox.NamedNode(_MF + "action"), None)
    ]
    iris = [action.value for action in actions if isinstance(action, ox.NamedNode)]
    return sorted(folder / iri.removeprefix("http://w3c.test/") for iri in iris)


def text_of(path: Path) -> str:
    """Return a test query with the line ends that it was written with."""
    return path.read_bytes().decode()
