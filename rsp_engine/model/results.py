"""Answers in the forms that others work with: rdflib, Arrow, HTML.

The libraries are imported when somebody asks for their form.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from rsp_engine.model.answers import Boolean, Graph, Solutions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    import rdflib
    from rdflib.term import Node

    from rsp_engine.model.answers import Answer, Row
    from rsp_engine.model.terms.term import Term


__all__ = ["as_arrow", "as_html", "as_rdflib"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_WHOLE = {f"{_XSD}{name}" for name in ("integer", "int", "long", "short", "byte")}
_NUMBERS = {*_WHOLE, *(f"{_XSD}{name}" for name in ("decimal", "double", "float"))}


def as_rdflib(answer: Answer) -> list[dict[str, Node]] | rdflib.Graph | bool | None:
    """Return the rows of a SELECT, the graph of a CONSTRUCT, or what an ASK says."""
    import rdflib

    content = answer.content
    if isinstance(content, Boolean):
        return content.value
    if isinstance(content, Graph):
        graph = rdflib.Graph()
        for triple in content.triples:
            parts: Any = [_node(each) for each in (triple.subject, triple.predicate, triple.object)]
            graph.add(tuple(parts))
        return graph
    return [{name: _node(term) for name, term in row.bindings.items()} for row in content.rows]


def _node(term: object) -> Node:
    import rdflib

    if isinstance(term, ox.NamedNode):
        return rdflib.URIRef(term.value)
    if isinstance(term, ox.BlankNode):
        return rdflib.BNode(term.value)
    assert isinstance(term, ox.Literal), "there are no triple terms in answers"  # noqa: S101
    if term.language is not None:
        return rdflib.Literal(term.value, lang=term.language)
    return rdflib.Literal(term.value, datatype=rdflib.URIRef(term.datatype.value))


def as_arrow(answers: Iterable[Answer]) -> pa.Table:
    """Return the rows of answers of SELECT as one table.

    A column whose values are all numbers holds numbers, any other text. What others than SELECT
    answer has no rows.
    """
    import pyarrow as pa

    found = [
        (a, row) for a in answers if isinstance(a.content, Solutions) for row in a.content.rows
    ]
    names = list(dict.fromkeys(n for a, _ in found for n in _variables(a)))
    columns: dict[str, Any] = {
        "query": pa.array([answer.query for answer, _ in found], pa.string()),
        "open": pa.array([answer.window.open for answer, _ in found], pa.int64()),
        "close": pa.array([answer.window.close for answer, _ in found], pa.int64()),
        "rank": pa.array([row.rank for _, row in found], pa.int64()),
        "score": pa.array([row.score for _, row in found], pa.float64()),
        "age": pa.array([row.age for _, row in found], pa.int64()),
    }
    taken = {name: name if name not in columns else f"?{name}" for name in names}
    for name in names:
        columns[taken[name]] = _column([row.bindings.get(name) for _, row in found])
    return pa.table(columns)


def _variables(answer: Answer) -> Sequence[str]:
    return answer.content.variables if isinstance(answer.content, Solutions) else ()


def _column(terms: Sequence[Term | None]) -> pa.Array:
    import pyarrow as pa

    kinds = {t.datatype.value if isinstance(t, ox.Literal) else "" for t in terms if t is not None}
    values = [None if term is None else term.value for term in terms]
    if kinds and kinds <= _WHOLE:
        return pa.array([None if v is None else int(v) for v in values])
    if kinds and kinds <= _NUMBERS:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array(values, pa.string())


def as_html(answer: Answer) -> str:
    """Return an answer as a table, for a notebook."""
    head = (
        f"<caption>{escape(answer.query)}, {answer.window.open} to {answer.window.close}</caption>"
    )
    content = answer.content
    if isinstance(content, Boolean):
        return f"<table>{head}<tr><td>{escape(str(content.value))}</td></tr></table>"
    if isinstance(content, Graph):
        lines = "".join(_cells([t.subject, t.predicate, t.object]) for t in content.triples)
        return f"<table>{head}{lines}</table>"
    names = [*(["#"] if content.ranked else []), *content.variables]
    names += ["score"] if content.ranked else []
    names += ["age"] if any(row.age is not None for row in content.rows) else []
    top = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = "".join(_cells(_values(content, row, names)) for row in content.rows)
    return f"<table>{head}<tr>{top}</tr>{rows}</table>"


def _values(content: Solutions, row: Row, names: Sequence[str]) -> list[object]:
    found: list[object] = [row.rank] if content.ranked else []
    found += [row.bindings.get(name) for name in content.variables]
    found += [row.score] if content.ranked else []
    return [*found, f"{row.age / 1000:g} s"] if row.age is not None and "age" in names else found


def _cells(values: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in values)}</tr>"


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value.value) if isinstance(value, ox.NamedNode | ox.Literal) else str(value)
