"""Answers of peers, in one form, and whether they agree with ours."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Answers", "agreement", "read_answers", "read_our_answers"]

Row = tuple[str | None, ...]
Answers = dict[int, list[Row]]
"""The rows of each window, by the time at which it closes."""


def read_answers(path: Path) -> Answers:
    """Read what a peer wrote."""
    with path.open(encoding="utf-8") as lines:
        return {close: [tuple(row) for row in rows] for close, rows in map(json.loads, lines)}


def read_our_answers(path: Path, query: str, variables: Sequence[str]) -> Answers:
    """Read what `rsp run` wrote of a query."""

    def row(bindings: dict[str, Any]) -> Row:
        return tuple(bindings[name]["value"] if name in bindings else None for name in variables)

    with path.open(encoding="utf-8") as lines:
        answers = [json.loads(line) for line in lines]
    return {
        answer["window"]["close"]: [row(each["bindings"]) for each in answer["rows"]]
        for answer in answers
        if answer["query"] == query
    }


def agreement(ours: Answers, theirs: Answers, limit: int | None) -> str:
    """Return in how many windows two answers are the same.

    Windows that close before our first one, which is the first whole one, do not count. Of rows
    with the same score, which is in the last column, any order is right, and under a `limit` any
    choice at its border.
    """
    first = min(ours, default=0)
    windows = [close for close in ours.keys() | theirs.keys() if close >= first]
    same = sum(_is_same(ours.get(close, []), theirs.get(close, []), limit) for close in windows)
    return "equal" if same == len(windows) else f"{same} of {len(windows)} windows equal"


def _is_same(ours: Sequence[Row], theirs: Sequence[Row], limit: int | None) -> bool:
    if limit is None:
        return Counter(ours) == Counter(theirs)
    border = ours[-1][-1] if len(ours) == limit else None
    above = [Counter(row for row in rows if row[-1] != border) for rows in (ours, theirs)]
    return [row[-1] for row in ours] == [row[-1] for row in theirs] and above[0] == above[1]
