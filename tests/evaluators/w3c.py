"""The W3C's evaluation tests of the SPARQL 1.1 query language, read from their manifests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyoxigraph as ox

from rsp_engine.grammar import parse, tree
from tests.data import data_folder
from tests.evaluators.windowed import Found, Question, Table, results

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["FOLDER", "Case", "cases"]

FOLDER = "w3c/sparql-eval"
_BASE = "http://w3c.test/"
_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_RESULTS = {".srx": ox.QueryResultsFormat.XML, ".srj": ox.QueryResultsFormat.JSON}

Subject = ox.NamedNode | ox.BlankNode


@dataclass(frozen=True, slots=True)
class Case:
    """A test: its files by their IRIs, and the files of its services by theirs."""

    name: str
    query: str
    result: str
    data: tuple[str, ...]
    graphs: tuple[str, ...]
    services: tuple[tuple[str, str], ...]

    @property
    def question(self) -> Question:
        """What is asked; files of FROM are the default graph."""
        return Question(
            self.name,
            self._text,
            _triples(self._from or self.data),
            {iri: _path(iri) for iri in self.graphs if iri not in self._from},
            {iri: _triples([data]) for iri, data in self.services},
        )

    @property
    def expected(self) -> Found:
        """What the W3C says that it answers."""
        path = _path(self.result)
        if path.suffix in _RESULTS:
            return results(ox.parse_query_results(path=path, format=_RESULTS[path.suffix]))
        triples = _triples([self.result])
        if any(triple.object == ox.NamedNode(f"{_RS}ResultSet") for triple in triples):
            return _result_set(triples)
        return tuple(triples)

    @property
    def by_oxigraph(self) -> Found:
        """What Oxigraph itself answers to the test as it is written; it has no services."""
        store = ox.Store()
        store.extend(ox.Quad(*triple) for triple in _triples(self.data))
        for iri in {*self.graphs, *self._from}:
            name = ox.NamedNode(iri)
            store.extend(ox.Quad(t.subject, t.predicate, t.object, name) for t in _triples([iri]))
        return results(store.query(self._text))

    @property
    def _text(self) -> str:
        return f"BASE <{self.query}>\n{_path(self.query).read_bytes().decode()}"

    @property
    def _from(self) -> list[str]:
        dataset = parse(self._text, self.name).form.dataset
        return [clause.graph.value for clause in dataset if isinstance(clause, tree.From)]


def cases() -> list[Case]:
    """Return every query evaluation test but those of entailment; none where there are no data."""
    manifests = sorted(data_folder(FOLDER).glob("*/manifest.ttl"))
    plain = (path for path in manifests if path.parent.name != "entailment")
    return [case for path in plain for case in _cases_of(path)]


def _cases_of(manifest: Path) -> Iterator[Case]:
    group, store = manifest.parent.name, ox.Store()
    store.load(path=manifest, base_iri=f"{_BASE}{group}/manifest.ttl")
    found = store.quads_for_pattern(None, _TYPE, ox.NamedNode(f"{_MF}QueryEvaluationTest"))
    for test in sorted({quad.subject for quad in found}, key=str):
        assert isinstance(test, ox.NamedNode)
        [action] = _objects(store, test, f"{_MF}action")
        [query] = _values(store, action, f"{_QT}query")
        [result] = _values(store, test, f"{_MF}result")
        yield Case(
            f"{group}/{test.value.rpartition('#')[2]}",
            query,
            result,
            _values(store, action, f"{_QT}data"),
            _values(store, action, f"{_QT}graphData"),
            tuple(_services(store, action)),
        )


def _services(store: ox.Store, action: Subject) -> Iterator[tuple[str, str]]:
    for service in _objects(store, action, f"{_QT}serviceData"):
        [endpoint] = _values(store, service, f"{_QT}endpoint")
        [data] = _values(store, service, f"{_QT}data")
        yield endpoint, data


def _objects(store: ox.Store, subject: Subject, predicate: str) -> list[Subject]:
    quads = store.quads_for_pattern(subject, ox.NamedNode(predicate), None)
    return sorted((q.object for q in quads if isinstance(q.object, Subject)), key=str)


def _values(store: ox.Store, subject: Subject, predicate: str) -> tuple[str, ...]:
    return tuple(found.value for found in _objects(store, subject, predicate))


def _path(iri: str) -> Path:
    return data_folder(FOLDER) / iri.removeprefix(_BASE)


def _triples(iris: Iterable[str]) -> list[ox.Triple]:
    """Return the triples of some files; each file has blank nodes of its own."""
    return [
        quad.triple
        for iri in iris
        for quad in ox.parse(path=_path(iri), base_iri=iri, rename_blank_nodes=True)
    ]


def _result_set(triples: Iterable[ox.Triple]) -> Table:
    """Return the table that a graph encodes in the W3C vocabulary of result sets."""
    store = ox.Store()
    store.extend(ox.Quad(*triple) for triple in triples)
    names = results(store.query(f"SELECT ?name {{ [] <{_RS}resultVariable> ?name }}"))
    cells = results(
        store.query(f"""SELECT * {{ [] <{_RS}solution> ?row
        OPTIONAL {{ ?row <{_RS}binding> [ <{_RS}variable> ?name ; <{_RS}value> ?value ] }} }}""")
    )
    assert isinstance(names, Table)
    assert isinstance(cells, Table)
    rows: dict[str, dict[str, ox.NamedNode | ox.BlankNode | ox.Literal]] = {}
    for cell in cells.rows:
        row = rows.setdefault(cell["row"].value, {})
        if "name" in cell:
            row[cell["name"].value] = cell["value"]
    return Table(tuple(row["name"].value for row in names.rows), tuple(rows.values()))
