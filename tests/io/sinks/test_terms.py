"""The cache of term texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal

from rsp_engine.io.sinks.term_text import TermTexts, score_text

if TYPE_CHECKING:
    from rsp_engine.model.terms.term import Term


def test_a_text_is_made_once():
    made: list[Term] = []

    def write(term: Term) -> str:
        made.append(term)
        return term.value

    texts = TermTexts(write)
    assert [texts[Literal(text)] for text in "aba"] == list("aba")
    assert made == [Literal("a"), Literal("b")]


@given(st.lists(st.text("ab", max_size=6)))
def test_the_memory_is_bounded_and_forgets_without_harm(values):
    texts = TermTexts(lambda term: term.value, most=3, longest=4)
    for value in values:
        assert texts[Literal(value)] == value
        assert len(texts) <= 3
        assert all(len(text) <= 4 for text in texts.values())


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_score_is_read_back(score):
    assert float(score_text(score)) == score
