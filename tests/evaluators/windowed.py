"""Plain SPARQL evaluated through a window, and its answers in a comparable form.

The default graph of a question is one element of a stream, its named graphs are static graphs, and
its remote data are services. The query is rewritten in one of three ways: `around` puts the whole
of its WHERE into one WINDOW, and `within` each basic graph pattern into a WINDOW of its own;
`instead` turns this round: named graphs are windows, so GRAPH becomes WINDOW, and the default graph
is static.

    time      5 s        15 s        25 s
    stream     |     the data         |          the outer elements make the middle window count
    windows (0, 10]    (10, 20]   (20, 30]       even if the data are empty

Equal answers have equal forms: literals are as a store keeps them, blank nodes are named
canonically, rows are a bag, and where the query orders them so do the variables it orders by.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import pyoxigraph as ox

from rsp_engine.engine import Engine
from rsp_engine.grammar import parse, serialise, tree
from rsp_engine.model.answers import Boolean, Graph, Solutions
from tests.replica.servers import OxigraphServer, free_port

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.model.answers import Answer
    from rsp_engine.options import RunnerName

__all__ = ["WAYS", "Found", "Question", "Table", "Way", "answers_of", "form", "results"]

Way = Literal["around", "within", "instead"]
WAYS: tuple[Way, ...] = ("around", "within", "instead")
Term = ox.NamedNode | ox.BlankNode | ox.Literal

_OUTER = "<urn:outer> <urn:outer> <urn:outer> ."
_CLOSE = 20_000
_TEN_SECONDS = tree.TimeWindow(tree.Duration(10_000))


@dataclass(frozen=True, slots=True)
class Question:
    """A query in plain SPARQL, and its data."""

    name: str
    text: str
    data: Sequence[ox.Triple] = ()
    graphs: Mapping[str, Path] = field(default_factory=dict)
    services: Mapping[str, Sequence[ox.Triple]] = field(default_factory=dict)

    @property
    def query(self) -> tree.QueryUnit:
        """The query as a syntax tree."""
        return parse(self.text, self.name)


@dataclass(frozen=True, slots=True)
class Table:
    """The solutions of a SELECT."""

    names: tuple[str, ...]
    rows: tuple[Mapping[str, Term], ...]


Found = bool | Table | tuple[ox.Triple, ...]
"""What an ASK, a SELECT or a CONSTRUCT answers."""


# The query, through a window.


def through_window(question: Question, way: Way) -> tree.QueryUnit:
    """Return the query as a continuous one."""
    query = question.query
    register = tree.Register(tree.Iri(_name(question)), "RSTREAM")
    form = _instead(query.form, question) if way == "instead" else _over(query.form, question, way)
    return replace(query, register=register, form=form)


def _over(form: tree.QueryForm, question: Question, way: Way) -> Any:
    """Return a query whose default graph is a window."""
    assert form.where is not None, "DESCRIBE alone may have no pattern"
    named = [c.graph.value for c in form.dataset if isinstance(c, tree.FromNamed)]
    window = tree.Iri(f"urn:window:{question.name}")
    dataset: tuple[tree.DatasetClause, ...] = (
        *(tree.FromNamed(tree.Iri(iri)) for iri in named or question.graphs),
        tree.FromWindow(window, tree.Iri(_stream(question)), _TEN_SECONDS),
    )
    where = (
        tree.GroupPattern((tree.WindowPattern(window, form.where),))
        if way == "around"
        else form.where
    )
    return _within(replace(form, dataset=dataset, where=where), window)


def _instead(form: tree.QueryForm, question: Question) -> Any:
    """Return a query whose named graphs are windows."""
    windows = (
        tree.FromWindow(tree.Iri(iri), tree.Iri(_stream(question, iri)), _TEN_SECONDS)
        for iri in question.graphs
    )
    dataset: tuple[tree.DatasetClause, ...] = (tree.From(tree.Iri(_default(question))), *windows)
    return tree.rewrite_tree(replace(form, dataset=dataset), _window_instead)


def _window_instead(node: tree.Node) -> tree.Node:
    return (
        tree.WindowPattern(node.name, node.group) if isinstance(node, tree.GraphPattern) else node
    )


def _name(question: Question) -> str:
    return f"urn:query:{question.name}"


def _stream(question: Question, graph: str = "") -> str:
    return f"urn:stream:{question.name}:{graph}"


def _default(question: Question) -> str:
    return f"urn:default:{question.name}"


def _within(value: Any, window: tree.Iri) -> Any:
    """Put each basic graph pattern that reads the default graph into a WINDOW."""
    match value:
        case tree.GraphPattern() | tree.ServicePattern() | tree.WindowPattern():
            return value
        case tree.GroupPattern(elements):
            return tree.GroupPattern(tuple(_within(e, window) for e in _joined(elements, window)))
        case tree.Node():
            names: tuple[str, ...] = type(value).__match_args__
            parts = (_within(getattr(value, name), window) for name in names)
            return type(value)(*parts, span=value.span)
        case tuple():
            return tuple(_within(item, window) for item in value)
        case _:
            return value


def _joined(elements: Sequence[tree.Node], window: tree.Iri) -> Iterator[tree.Node]:
    """Join triples that only filters keep apart: they are one basic graph pattern."""
    triples: list[tree.SubjectTriples] = []
    for element in (*(e for e in elements if not isinstance(e, tree.FilterClause)), None):
        if isinstance(element, tree.TriplesBlock):
            triples += element.subjects
            continue
        if triples:
            block = tree.TriplesBlock(tuple(triples))
            yield tree.WindowPattern(window, tree.GroupPattern((block,)))
            triples = []
        if element is not None:
            yield element
    yield from (e for e in elements if isinstance(e, tree.FilterClause))


# The engine's answers.


def answers_of(
    questions: Sequence[Question], way: Way, runner: RunnerName = "local"
) -> dict[str, Found]:
    """Ask some questions in one run; return the answer to each, by its name."""
    with ExitStack() as stack:
        engine = stack.enter_context(Engine(report="every", runner=runner))
        for question in questions:
            _bind(engine, question, way, stack)
        answers = [answer for answer in engine.run() if answer.window.close == _CLOSE]
    return {answer.query.removeprefix("urn:query:"): _found(answer) for answer in answers}


def _bind(engine: Engine, question: Question, way: Way, stack: ExitStack) -> None:
    query = through_window(question, way)
    if way == "instead":
        _bind_windows(engine, question, stack)
    else:
        for iri, path in question.graphs.items():
            engine.graph(iri, path)
        engine.bind(_stream(question), _elements(question.data))
    inner = set(_inner_services(query))
    for iri, triples in question.services.items():
        if iri in inner:
            query = _renamed(query, iri, _served(triples, stack))
        else:
            engine.service(iri, _served(triples, stack) if inner else _store(triples))
    for iri in inner - question.services.keys():
        query = _renamed(query, iri, f"http://127.0.0.1:{free_port()}/nobody")
    engine.register(serialise(query), question.name)


def _bind_windows(engine: Engine, question: Question, stack: ExitStack) -> None:
    path = Path(stack.enter_context(TemporaryDirectory())) / "default.nt"
    path.write_text(_text(question.data), encoding="utf-8")
    engine.graph(_default(question), path)
    for iri, graph in question.graphs.items():
        quads = ox.parse(path=graph, base_iri=iri, rename_blank_nodes=True)
        engine.bind(_stream(question, iri), _elements(quad.triple for quad in quads))


def _elements(data: Iterable[ox.Triple]) -> list[tuple[int, str]]:
    return [(5_000, _OUTER), (15_000, _text(data)), (25_000, _OUTER)]


def _text(data: Iterable[ox.Triple]) -> str:
    return "".join(f"{triple} .\n" for triple in data)


def _inner_services(query: tree.QueryUnit) -> Iterator[str]:
    """Yield the services inside of others: a server calls them, so they have an address."""
    for outer in tree.find(query, tree.ServicePattern):
        for inner in tree.find(outer.group, tree.ServicePattern):
            assert isinstance(inner.name, tree.Iri)
            yield inner.name.value


def _served(triples: Iterable[ox.Triple], stack: ExitStack) -> str:
    """Start a server that holds some triples; return its address."""
    server = stack.enter_context(OxigraphServer())
    server.update(f"INSERT DATA {{ {' . '.join(map(str, triples))} }}")
    return server.query_url


def _renamed(query: tree.QueryUnit, old: str, new: str) -> tree.QueryUnit:
    def change(node: tree.Node) -> tree.Node:
        return tree.Iri(new) if node == tree.Iri(old) else node

    changed = tree.rewrite_tree(query, change)
    assert isinstance(changed, tree.QueryUnit)
    return changed


def _store(triples: Iterable[ox.Triple]) -> ox.Store:
    store = ox.Store()
    store.extend(ox.Quad(*triple) for triple in triples)
    return store


def _found(answer: Answer) -> Found:
    match answer.content:
        case Boolean(value):
            return bool(value)
        case Graph(triples):
            return triples
        case Solutions(variables, rows):
            return Table(variables, tuple(row.bindings for row in rows))


def results(found: ox.QuerySolutions | ox.QueryBoolean | ox.QueryTriples) -> Found:
    """Return what Oxigraph answers, or reads from a file."""
    match found:
        case ox.QueryBoolean():
            return bool(found)
        case ox.QueryTriples():
            return tuple(found)
        case _:
            names = tuple(variable.value for variable in found.variables)
            rows = ({n: r[n] for n in names if r[n] is not None} for r in found)
            return Table(names, tuple(rows))


# The form of an answer.


def form(
    question: Question, found: Found, sequence: Sequence[str] | None = None
) -> bool | list[str]:
    """Return an answer in a form that is the same for equal answers to the question.

    The sequence of the values of some variables counts: those that the query orders by, or others.
    """
    match found:
        case bool():
            return found
        case Table(names, rows):
            chosen = _ordering(question) if sequence is None else sequence
            quads = [*_bag(rows), *_places(rows, chosen), *map(_head, names)]
        case _:
            quads = [ox.Quad(*triple) for triple in found]
    store = ox.Store()
    store.extend(quads)
    kept = ox.Dataset(store)
    kept.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return sorted(map(str, kept))


def _head(name: str) -> ox.Quad:
    return ox.Quad(ox.NamedNode("urn:head"), ox.NamedNode("urn:variable"), ox.Literal(name))


def _bag(rows: Iterable[Mapping[str, Term]]) -> Iterator[ox.Quad]:
    """Yield each distinct row with its multiplicity."""
    counted = Counter(frozenset(row.items()) for row in rows)
    for place, (row, times) in enumerate(counted.items()):
        node = ox.BlankNode(f"row{place}")
        yield ox.Quad(node, ox.NamedNode("urn:times"), ox.Literal(times))
        yield from (ox.Quad(node, ox.NamedNode(f"urn:v:{name}"), term) for name, term in row)


def _ordering(question: Question) -> list[str]:
    """Return the variables that a query orders by."""
    conditions = question.query.form.modifiers.order_by
    return [c.expression.name for c in conditions if isinstance(c.expression, tree.Var)]


def _places(rows: Iterable[Mapping[str, Term]], names: Sequence[str]) -> Iterator[ox.Quad]:
    """Yield the values of these variables with their row numbers."""
    for place, row in enumerate(rows):
        for name in (n for n in names if n in row):
            yield ox.Quad(
                ox.NamedNode(f"urn:place:{place}"), ox.NamedNode(f"urn:v:{name}"), row[name]
            )
