"""Conversions of answers to rdflib, Arrow and pandas.

Each library is imported on the first conversion to it, since importing them is slow.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from rsp_engine.errors import RspError
from rsp_engine.model.answers import Boolean, Graph, Solutions
from rsp_engine.model.extras import install_command
from rsp_engine.model.terms.numerals import INTEGERS, NUMERALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    import pyarrow as pa
    import rdflib
    from rdflib.term import Node

    from rsp_engine.model.answers import Answer
    from rsp_engine.model.terms.term import Term


__all__ = ["as_arrow", "as_pandas", "as_rdflib"]


def as_rdflib(answer: Answer) -> list[dict[str, Node]] | rdflib.Graph | bool | None:
    """Return the rows of a SELECT, the graph of a CONSTRUCT, or the value of an ASK."""
    import rdflib

    content = answer.content
    if isinstance(content, Boolean):
        return content.value
    if isinstance(content, Graph):
        graph = rdflib.Graph()
        for triple in content.triples:
            nodes: Any = map(_node, (triple.subject, triple.predicate, triple.object))
            graph.add(tuple(nodes))
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
    datatype = rdflib.URIRef(term.datatype.value)
    # As rdflib's parsers do: to rdflib, a literal with the datatype xsd:string is another one.
    return rdflib.Literal(term.value, datatype=None if datatype == rdflib.XSD.string else datatype)


def as_arrow(answers: Iterable[Answer]) -> pa.Table:
    """Return the rows of SELECT answers as one table; skip the answers of other query forms.

    A column is numeric if all its values are numbers, and text otherwise: also where a literal is
    ill-typed or beyond 64 bits. Every variable has a column, even if no answer has rows. A variable
    that is named like a fixed column (`query`, `open`, `close`, `rank`, `score`, `age`) gets a
    leading `?`.
    """
    import pyarrow as pa

    tables = [(a, a.content) for a in answers if isinstance(a.content, Solutions)]
    rows = [(answer, row) for answer, content in tables for row in content.rows]
    variables = list(dict.fromkeys(name for _, content in tables for name in content.variables))
    columns: dict[str, Any] = {
        "query": pa.array([answer.query for answer, _ in rows], pa.string()),
        "open": pa.array([answer.window.open for answer, _ in rows], pa.int64()),
        "close": pa.array([answer.window.close for answer, _ in rows], pa.int64()),
        "rank": pa.array([row.rank for _, row in rows], pa.int64()),
        "score": pa.array([row.score for _, row in rows], pa.float64()),
        "age": pa.array([row.age for _, row in rows], pa.int64()),
    }
    headings = {name: name if name not in columns else f"?{name}" for name in variables}
    for name in variables:
        columns[headings[name]] = _column([row.bindings.get(name) for _, row in rows])
    return pa.table(columns)


def as_pandas(answer: Answer) -> pd.DataFrame:
    """Return the rows of a SELECT as a data frame; raise `RspError` if pandas is not installed."""
    if find_spec("pandas") is None:
        hint = f"install it: {install_command('pandas')}"
        raise RspError("a data frame needs pandas, the extra `pandas`", hint)
    return as_arrow([answer]).to_pandas()


def _column(terms: Sequence[Term | None]) -> pa.Array:
    import pyarrow as pa

    known = [term for term in terms if term is not None]
    kinds = {t.datatype.value if isinstance(t, ox.Literal) else "" for t in known}
    texts = [None if term is None else term.value for term in terms]
    try:
        numbers = [None if term is None else _number(term) for term in terms]
    except (LookupError, ValueError):
        numbers = []
    if not known or not numbers:
        return pa.array(texts, pa.string())
    if kinds <= {*INTEGERS}:
        return pa.array([None if text is None else int(text) for text in texts], pa.int64())
    return pa.array(numbers, pa.float64())


def _number(term: Term) -> float:
    """Return the number of a literal; raise an error if it has none."""
    kind = term.datatype.value if isinstance(term, ox.Literal) else ""
    return NUMERALS[kind](term.value)
