"""Text of terms and scores, shared by the output formats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rsp_engine.model.terms.term import Term

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TermTexts", "score_text"]


class TermTexts(dict[Term, str]):
    """A bounded cache of the texts of terms.

    Answers repeat their terms from row to row and from window to window. The cache has at most
    `most` entries, none longer than `longest` characters, and is cleared when it is full.

    >>> from pyoxigraph import NamedNode
    >>> texts = TermTexts(str)
    >>> texts[NamedNode("http://example.org/a")]
    '<http://example.org/a>'
    >>> len(texts)
    1
    """

    def __init__(
        self, write: Callable[[Term], str], most: int = 65_536, longest: int = 1_000
    ) -> None:
        super().__init__()
        self._write = write
        self._most = most
        self._longest = longest

    def __missing__(self, term: Term) -> str:
        text = self._write(term)
        if len(text) <= self._longest:
            if len(self) >= self._most:
                self.clear()
            self[term] = text
        return text


def score_text(score: float) -> str:
    """Return a score in the lexical form of xsd:double, with digits that round-trip exactly.

    >>> score_text(0.1), score_text(float("inf")), score_text(float("-inf"))
    ('0.1', 'INF', '-INF')
    """
    if math.isfinite(score):
        return repr(float(score))
    if math.isnan(score):
        return "NaN"
    return "INF" if score > 0 else "-INF"
