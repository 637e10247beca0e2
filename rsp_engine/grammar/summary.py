"""The one-line summary of a query that `rsp validate` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.grammar.tree import NamedCall, ServicePattern, find
from rsp_engine.grammar.write import WriteQueries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.grammar.tree import QueryUnit

__all__ = ["summary"]


def summary(query: QueryUnit) -> str:
    """Summarise a query in one line: its form, its inputs, its ranking and its functions.

    >>> from rsp_engine.grammar import parse
    >>> summary(parse('''
    ...     PREFIX : <http://example.org/>
    ...     REGISTER ISTREAM :out AS SELECT ?x FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m]
    ...     WHERE { WINDOW :w { ?x :p ?y } } ORDER BY DESC(F(?y)) LIMIT 3'''))
    'ISTREAM of a SELECT, 1 window on 1 stream, top 3 by DESC F(?y), needs function F'
    """
    return ", ".join(_parts(query))


def _parts(query: QueryUnit) -> Iterator[str]:
    form = query.form.keyword
    article = "an" if form == "ASK" else "a"
    yield form if query.register is None else f"{query.register.r2s} of {article} {form}"
    if windows := query.windows:
        streams = len({window.stream for window in windows})
        yield f"{_count(len(windows), 'window')} on {_count(streams, 'stream')}"
    if services := len(list(find(query, ServicePattern))):
        yield _count(services, "service")
    modifiers = query.form.modifiers
    if modifiers.limit is not None and modifiers.order_by:
        writer = WriteQueries(query.prefixes)
        keys = (
            f"{'DESC' if condition.descending else 'ASC'} {writer.expression(condition.expression)}"
            for condition in modifiers.order_by
        )
        yield f"top {modifiers.limit.value} by {' '.join(' then '.join(keys).split())}"
    if functions := sorted({call.name for call in find(query, NamedCall)}):
        yield f"needs function{'s' * (len(functions) > 1)} {' and '.join(functions)}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"
