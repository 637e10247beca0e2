"""Terms and scores as text, for all formats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rsp_engine.model.terms.term import Term

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TermTexts", "score_text"]


class TermTexts(dict[Term, str]):
    """The texts of terms, each made once as long as it is remembered.

    Answers repeat their terms: from row to row, and from window to window. At most `most` texts
    are remembered, and none longer than `longest` characters, so that memory stays bounded.

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
    """Write a score as xsd:double does, with the digits that read back as the same number.

    >>> score_text(0.1), score_text(float("inf")), score_text(float("-inf"))
    ('0.1', 'INF', '-INF')
    """
    if math.isfinite(score):
        return repr(float(score))
    if math.isnan(score):
        return "NaN"
    return "INF" if score > 0 else "-INF"
