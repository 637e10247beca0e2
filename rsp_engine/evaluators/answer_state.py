"""The saved form of an answer: columns of plain data, with terms as N-Triples.

R2S compares each answer with the one before, which is therefore part of the saved state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, assert_never

from rsp_engine.model.answers import Row
from rsp_engine.model.terms.ntriples import read_rows, read_triples, row_text, triples_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

    Form = Literal["SELECT", "CONSTRUCT", "ASK"]

__all__ = ["read_answer", "write_answer"]

_COLUMNS = ("rank", "score", "age")


def write_answer(config: SparqlConfig, rows: Sequence[Any]) -> Any:  # noqa: ANN401 - plain data
    """Write the content of an answer: rows, triples, or a boolean."""
    form: Form = config.form
    match form:
        case "SELECT":
            names = config.variables
            texts = [row_text([row.bindings.get(name) for name in names]) for row in rows]
            places = {place: [getattr(row, place) for row in rows] for place in _COLUMNS}
            return {"rows": texts, **places}
        case "CONSTRUCT":
            return triples_text(rows)
        case "ASK":
            return list(rows)
        case _ as unreachable:
            assert_never(unreachable)


def read_answer(config: SparqlConfig, state: Any) -> Sequence[object]:  # noqa: ANN401 - plain data
    """Read the content of an answer written by `write_answer`."""
    form: Form = config.form
    match form:
        case "SELECT":
            names = config.variables
            rows = read_rows(state["rows"], len(names))
            columns = zip(rows, *(state[place] for place in _COLUMNS), strict=True)
            return [
                Row({n: t for n, t in zip(names, row, strict=True) if t is not None}, *places)
                for row, *places in columns
            ]
        case "CONSTRUCT":
            return read_triples(state)
        case "ASK":
            return [bool(value) for value in state]
        case _ as unreachable:
            assert_never(unreachable)
