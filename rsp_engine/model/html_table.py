"""Answers as HTML tables, which notebooks show.

Times are those of the clock of this computer. An IRI is shown by its last part, unless another one
in the answer ends alike; pointing at it shows the whole. All styles are inline, since notebooks
remove style sheets.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING, cast

from pyoxigraph import BlankNode, Literal, NamedNode

from rsp_engine.model.answers import Boolean, Graph
from rsp_engine.model.display import (
    TermFormatter,
    format_age,
    format_number,
    format_window,
    is_measure,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rsp_engine.model.answers import Answer, Interval, Solutions
    from rsp_engine.model.terms.term import Term

__all__ = ["as_html"]

_DATE_TIME = NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
_TABLE = "border-collapse: collapse; font-variant-numeric: tabular-nums"
_CAPTION = "text-align: left; padding: 4px 0; white-space: nowrap"
_CELL = "padding: 3px 10px; border-bottom: 1px solid rgba(128, 128, 128, 0.3)"
_LEFT, _RIGHT = f"text-align: left; {_CELL}", f"text-align: right; {_CELL}"
_FAINT = "opacity: 0.65"


def as_html(answer: Answer) -> str:
    """Return an answer as an HTML table, with its query and its window above it."""
    content = answer.content
    if isinstance(content, Boolean):
        names = _ShortNames([])
        rows = [_row([_cell("" if content.value is None else str(content.value).lower())])]
    elif isinstance(content, Graph):
        triples = cast(
            "list[tuple[Term, ...]]", [(t.subject, t.predicate, t.object) for t in content.triples]
        )
        names = _ShortNames([term for triple in triples for term in triple])
        rows = [_row(map(names.cell, triple)) for triple in triples]
    else:
        names = _ShortNames([term for row in content.rows for term in row.bindings.values()])
        rows = _solution_rows(content, names)
    caption = f"<b>{names.iri(answer.query)}</b> {_window(answer.window)}"
    body = "".join(rows)
    return f'<table style="{_TABLE}"><caption style="{_CAPTION}">{caption}</caption>{body}</table>'


def _solution_rows(content: Solutions, names: _ShortNames) -> list[str]:
    has_age = any(row.age is not None for row in content.rows)
    heads = [(name, _is_right(content, name)) for name in content.variables]
    if content.ranked:
        heads = [("#", True), *heads, ("score", True)]
    if has_age:
        heads.append(("age", True))
    rows = [_row(_cell(escape(name), is_right=right, tag="th") for name, right in heads)]
    for row in content.rows:
        cells = [names.cell(row.bindings.get(name)) for name in content.variables]
        if content.ranked:
            score = "" if row.score is None else format_number(repr(row.score))
            rank = _cell("" if row.rank is None else str(row.rank), is_right=True)
            cells = [rank, *cells, _cell(score, is_right=True)]
        if has_age:
            cells.append(_cell("" if row.age is None else format_age(row.age), is_right=True))
        rows.append(_row(cells))
    return rows


def _is_right(content: Solutions, name: str) -> bool:
    """Return whether the column of a variable has measures alone, which are aligned right."""
    terms = [row.bindings[name] for row in content.rows if name in row.bindings]
    return bool(terms) and all(map(is_measure, terms))


def _window(window: Interval) -> str:
    """Return the edges of a window, with the time zone if they are times of the clock."""
    text = format_window(window, None)
    if ":" in text:
        text += f" {datetime.fromtimestamp(window.close / 1000).astimezone():%Z}"
    return f'<span style="{_FAINT}">{escape(text)}</span>'


class _ShortNames:
    """The terms of an answer as short HTML."""

    def __init__(self, terms: Iterable[object]) -> None:
        iris = {term.value for term in terms if isinstance(term, NamedNode)}
        self._count = Counter(map(_last_part, iris))
        self._format = TermFormatter({})

    def cell(self, term: Term | None) -> str:
        """Return the cell of a term; an empty one if there is none."""
        if term is None:
            return _cell("")
        return _cell(self.text(term), is_right=is_measure(term))

    def text(self, term: Term) -> str:
        """Return a term; the whole of it is shown to who points at it, if it was made shorter."""
        if isinstance(term, NamedNode):
            return self.iri(term.value)
        if isinstance(term, Literal) and term.datatype == _DATE_TIME:
            return _titled(_local(term.value), term.value)
        short = self._format(term)
        return _titled(short, short if isinstance(term, BlankNode) else term.value)

    def iri(self, value: str) -> str:
        """Return the last part of an IRI, or the whole if others of the answer end alike."""
        last = _last_part(value)
        return _titled(last if self._count[last] <= 1 else value, value)


def _titled(short: str, whole: str) -> str:
    if short == whole:
        return escape(short)
    return f'<span title="{escape(whole)}">{escape(short)}</span>'


def _last_part(iri: str) -> str:
    """Return what follows the last `#`, `/` or `:` of an IRI, but for one at its end.

    >>> _last_part("http://example.org/user/ann"), _last_part("urn:a:b"), _last_part("http://a.org/b/")
    ('ann', 'b', 'b/')
    """
    return re.split(r"[#/:](?=.)", iri)[-1]


def _local(text: str) -> str:
    """Return a time with a zone on the clock of this computer, and other texts as they are."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    return text if time.tzinfo is None else f"{time.astimezone():%Y-%m-%d %H:%M:%S}"


def _row(cells: Iterable[str]) -> str:
    return f"<tr>{''.join(cells)}</tr>"


def _cell(html: str, *, is_right: bool = False, tag: str = "td") -> str:
    return f'<{tag} style="{_RIGHT if is_right else _LEFT}">{html}</{tag}>'
