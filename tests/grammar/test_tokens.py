"""The lexer takes the longest match, checked against each terminal on its own."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st
from lark.exceptions import UnexpectedCharacters

from rsp_engine.grammar.parser import tables
from tests.grammar.test_fuzz import TOKENS
from tests.thoroughness import examples

PIECES = st.sampled_from(
    [*TOKENS, " ", ":", "-", ".", "e", "9", "m", "'", '"', "<", ">", "P1D", "ex"]
)


def patterns() -> list[re.Pattern[str]]:
    return [re.compile(terminal.pattern.to_regexp()) for terminal in tables().terminals]


@examples(300)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_every_token_is_the_longest_match_at_its_place(text):
    terminals = patterns()
    place = 0
    try:
        for token in tables().lex(text):
            start = token.start_pos or 0
            gap = text[place:start]
            assert re.fullmatch(r"(\s|#.*)*", gap)
            longest = max(len(m[0]) for p in terminals if (m := p.match(text, start)))
            assert len(token) == longest
            place = token.end_pos or 0
    except UnexpectedCharacters as error:
        rest = text[error.pos_in_stream :]
        assert not any(p.match(rest) for p in terminals)


def lexed(text: str, *, is_ascii: bool) -> list[tuple[str, str]] | int | None:
    """Return the tokens of a text, or the place of the character that begins none."""
    try:
        return [(token.type, str(token)) for token in tables(is_ascii=is_ascii).lex(text)]
    except UnexpectedCharacters as error:
        return error.pos_in_stream


ASCII = st.characters(max_codepoint=127)


@examples(300)
@given(st.lists(PIECES | st.text(ASCII, max_size=3), max_size=8).map("".join))
def test_a_text_of_ascii_has_the_same_tokens_in_both_tables(text):
    assume(text.isascii())
    assert lexed(text, is_ascii=True) == lexed(text, is_ascii=False)


def test_only_the_characters_of_names_differ_between_both_tables():
    both = [tables(is_ascii=is_ascii) for is_ascii in (True, False)]
    of_ascii, of_all = ([(each.name, each.priority) for each in one.terminals] for one in both)
    assert of_ascii == of_all
    assert lexed("?é :é _:é", is_ascii=False) == [
        ("VAR", "?é"), ("PNAME_LN", ":é"), ("BLANK_NODE_LABEL", "_:é")
    ]  # fmt: skip
    for terminal, other in zip(both[0].terminals, both[1].terminals, strict=True):
        assert len(terminal.pattern.value) == len(other.pattern.value)  # so they are tried in order
        assert terminal.pattern.max_width == other.pattern.max_width
