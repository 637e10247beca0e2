"""Rows that are written alike: a pattern made of the first one finds the values of all at once.

The rows of most results differ only in the values of their variables:

    {"user":{"type":"uri","value":"http://a.org/1"},"n":{"type":"literal","value":"7"}},
    {"user":{"type":"uri","value":"http://a.org/2"},"n":{"type":"literal","value":"9"}}

So the text is not parsed as JSON, which would make four objects for each value. The pattern must
match from the first character of the rows to their last; any other text is left to the parser.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["AlikeRows", "alike_rows"]

_ARRAY = re.compile(r'"bindings"\s*:\s*\[\s*')
_TEXT = r'([^"\\\x00-\x1f]*+)'
_VALUE = re.compile(r'"value"\s*:\s*"' + _TEXT + '"')
_BETWEEN = re.compile(r"\s*,\s*")
_DECODER = json.JSONDecoder()


class AlikeRows(NamedTuple):
    """The texts of each variable, and what the cells of a variable have in common."""

    forms: Mapping[str, Mapping[str, object]]
    """The first cell of each variable."""
    columns: Mapping[str, Sequence[str]]
    size: int


def alike_rows(text: str) -> AlikeRows | None:
    r"""Return the rows of a document; None if they are not alike, or not valid.

    >>> cell = '{"type":"literal","value":"%s"}'
    >>> row = '{"a":' + cell + "}"
    >>> alike_rows('{"results":{"bindings":[%s,%s]}}' % (row % 1, row % 2)).columns
    {'a': ('1', '2')}
    >>> alike_rows('{"results":{"bindings":[%s,{}]}}' % (row % 1))
    """
    array = _ARRAY.search(text)
    if array is None or not text.startswith("{", array.end()):
        return None
    start, end = array.end(), text.rfind("]")
    while end > start and text[end - 1].isspace():
        end -= 1
    try:
        first, stop = _DECODER.raw_decode(text, start)
        around = text[:start] + text[end:]
        is_result = json.loads(around)["results"]["bindings"] == []
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    if not is_result or around.count('"bindings"') > 1:
        return None
    between = _BETWEEN.match(text, stop)
    pattern = _pattern(text[start:stop], len(first), between[0] if between else ",")
    if pattern is None:
        return None
    rows = pattern.findall(text, start, end)
    if not rows:
        return None
    columns = list(zip(*rows, strict=True)) if len(first) > 1 else [tuple(rows)]
    fixed = stop - start - sum(len(column[0]) for column in columns)
    size = sum(sum(map(len, column)) for column in columns) + fixed * len(rows)
    if size + (len(rows) - 1) * (len(between[0]) if between else 0) != end - start:
        return None
    return AlikeRows(first, dict(zip(first, columns, strict=True)), len(rows))


def _pattern(row: str, variables: int, between: str) -> re.Pattern[str] | None:
    """Return a pattern of rows like one, with a group for each value; None if there is none."""
    values = list(_VALUE.finditer(row))
    if not variables or len(values) != variables or "\\" in row:
        return None
    edges = [0, *(edge for value in values for edge in value.span(1)), len(row)]
    fixed = [re.escape(row[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return re.compile(f"{_TEXT.join(fixed)}(?:{re.escape(between)}|\\Z)")
