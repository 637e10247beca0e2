"""The lexer takes the longest match, checked against each terminal on its own."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from lark.exceptions import UnexpectedCharacters

from rsp_engine.grammar.parser.tables import tables
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
