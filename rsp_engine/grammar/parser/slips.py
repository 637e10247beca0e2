"""Common slips, recognised where the parser stops, each with a hint.

A slip is a function from what is known about the failure to a hint, or nothing. The first in
`SLIPS` that knows an answer gives it.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.grammar.parser.failure import END
from rsp_engine.grammar.parser.words import keywords

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.grammar.parser.failure import Failure

__all__ = ["SLIPS"]

_UPDATE = {"INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH"}
_AGGREGATES = {"COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"}
_TERMS = {"VAR", "IRIREF", "PNAME_LN", "BLANK_NODE_LABEL", "LSQB"}
_SQL_WORDS = {
    "AND": "write `&&` for AND",
    "OR": "write `||` for OR",
    "LIKE": 'SPARQL has no LIKE: use CONTAINS(?x, "text") or REGEX(?x, "pattern")',
    "IS": "SPARQL has no IS NULL: use BOUND(?x) or !BOUND(?x)",
    "NULL": "SPARQL has no NULL: VALUES has UNDEF, filters have BOUND(?x)",
    "BETWEEN": "SPARQL has no BETWEEN: write ?x >= 1 && ?x <= 9",
    "TOP": "SPARQL has no TOP: put LIMIT at the end of the query",
    "JOIN": "SPARQL has no JOIN: patterns that share a variable are joined",
    "BINDINGS": "BINDINGS is now VALUES",
}
_UNIT = re.compile(r"(ms|millis|s|sec|second|m|min|minute|h|hour|d|day)[a-z]*", re.IGNORECASE)


def unclosed_string(f: Failure) -> str | None:
    """`"abc` and the end of the line."""
    if f.found is None and f.value in ("'", '"'):
        long = f.text.startswith(f.value * 3, f.span.start)
        quote = f.value * 3 if long else f.value
        return f"close it with {quote}, and write a backslash in it as `\\\\`"
    return None


def foreign_character(f: Failure) -> str | None:
    """Characters that a text processor puts in, and half operators."""
    hints = {
        "“”„‟«»": 'use straight double quotes: "',
        "‘’‚‛": "use straight single quotes: '",
        "\u00a0\u200b\ufeff\u2007\u202f": "this is an invisible character: replace it by a blank",
        "–—−": "use the plain hyphen: -",
        "&": "write `&&` for and",
        "%": "SPARQL has no remainder operator",
        "\\": "a backslash can stand only in strings, prefixed names and \\u0041 escapes",
    }
    if f.found is None:
        return next((hint for signs, hint in hints.items() if f.value in signs), None)
    return None


def turtle_prefix(f: Failure) -> str | None:
    """`@prefix ex: <...> .` as in Turtle."""
    if f.found == "LANGTAG" and f.value.lower() in ("@prefix", "@base"):
        word = f.value[1:].upper()
        return f"in a query write {word} without `@` and without a dot at the end"
    if f.found == "DOT" and f.previous().endswith(">") and f.previous(3) == "PREFIX":
        return "no dot stands after a PREFIX in a query"
    return None


def update(f: Failure) -> str | None:
    """SPARQL Update."""
    if f.value.upper() in _UPDATE and "SELECT" in f.expected:
        return "this is SPARQL Update, which changes data: RSP-QL only asks"
    return None


def other_stream_languages(f: Failure) -> str | None:
    """C-SPARQL and CQELS."""
    word = f.value.upper()
    if f.previous() == "FROM" and word == "STREAM":
        return "write FROM NAMED WINDOW :w ON STREAM :s [RANGE ...], and WINDOW :w { ... } in WHERE"
    if word == "STREAM" and "FILTER" in f.expected:
        return "declare FROM NAMED WINDOW :w ON STREAM :s [...], and write WINDOW :w { ... } here"
    if word in ("RSTREAM", "ISTREAM", "DSTREAM"):
        return f"write REGISTER {word} name AS before the query"
    if word == "COMPUTED":
        return "how often a query is evaluated is the STEP of its window"
    return None


def prefix_declaration(f: Failure) -> str | None:
    """`PREFIX ex <...>` and `PREFIX ex: http://...`."""
    if f.previous() == "PREFIX" and f.value.isalnum():
        return f"put a colon after the name: PREFIX {f.value}: <...>"
    if f.previous(2) == "PREFIX" and "IRIREF" in f.expected:
        return "put the IRI in `<` and `>`"
    return None


def window_size(f: Failure) -> str | None:
    """Durations and brackets of a window."""
    inside = bool(f.opened) and f.opened[-1] == "["
    if f.found == "NAME" and f.previous(2) in ("RANGE", "STEP", "SLIDE") and inside:
        return f"write the unit right after the number: {f.previous()}{_short_unit(f.value)}"
    if f.found == "COMMA" and inside and {"STEP"} <= f.expected:
        return "no comma stands between RANGE and STEP"
    if inside and "DURATION" in f.expected:
        return "a duration is a number with a unit (500ms, 10s, 9m, 2h, 1d) or PT9M"
    if f.found == "DURATION" and f.expected >= {"INTEGER"} and inside:
        return "a window over elements has a number of elements; RANGE has a duration"
    return None


def window_brackets(f: Failure) -> str | None:
    """`ON :s RANGE 9m` and `[STEP 3m RANGE 9m]`."""
    if f.found in ("RANGE", "ELEMENTS", "TRIPLES", "ROWS") and f.expected == {"LSQB"}:
        return "put the size of the window in brackets: [RANGE 9m STEP 3m]"
    if f.found in ("STEP", "SLIDE") and "RANGE" in f.expected:
        return "RANGE comes first: [RANGE 9m STEP 3m]"
    return None


def _short_unit(word: str) -> str:
    match = _UNIT.fullmatch(word)
    if match is None:
        return "s"
    return "ms" if match[1].lower() in ("ms", "millis") else match[1][0].lower()


def aggregate_without_brackets(f: Failure) -> str | None:
    """`SELECT COUNT(?x) AS ?n`."""
    if f.found in _AGGREGATES and _in_select(f):
        return f"put brackets around it, and give it a name: ({f.found}(?x) AS ?n)"
    return None


def select_list(f: Failure) -> str | None:
    """Commas, bare names and missing names in SELECT."""
    if f.found == "COMMA" and _in_select(f):
        return "no commas stand between the variables of SELECT"
    if f.found == "RPAR" and "AS" in f.expected:
        return "give the expression a name: (... AS ?name)"
    if f.expected == {"AS"} and _in_select(f):
        return "give it a name: ... AS ?name"
    if f.expected == {"AS"} and "REGISTER" in (f.previous(2), f.previous(3)):
        return "AS stands between the name and the query: REGISTER RSTREAM :name AS SELECT ..."
    return None


def _in_select(f: Failure) -> bool:
    clause = next((str(t).upper() for t in reversed(f.before) if t.type in _CLAUSES), "")
    return clause == "SELECT" and not f.opened


_CLAUSES = {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LBRACE"}


def order_direction(f: Failure) -> str | None:
    """`ORDER BY ?x DESC`."""
    if f.expected == {"LPAR"} and f.previous() in ("ASC", "DESC") and f.before[-2].type == "VAR":
        return f"the direction comes first: {f.previous()}({f.before[-2]})"
    if f.found == "COMMA" and any(t.type in ("ORDER", "GROUP") for t in f.before) and not f.opened:
        return "no commas stand between the conditions of ORDER BY and GROUP BY"
    if f.found == "COMMA" and f.previous(2) == "LIMIT":
        return "write LIMIT and OFFSET apart: LIMIT 10 OFFSET 20"
    return None


def sql_words(f: Failure) -> str | None:
    """Words of SQL."""
    if f.found == "NAME" and (hint := _SQL_WORDS.get(f.value.upper())):
        return hint
    if f.found == "EQUAL" and f.previous() == "=":
        return "write a single `=`"
    if f.found == "IRIREF" and f.value == "<>":
        return "write `!=` for not equal"
    if f.found == "SEMICOLON" and END in f.expected:
        return "no semicolon stands at the end of a query"
    return None


def filter_without_brackets(f: Failure) -> str | None:
    """`FILTER ?x > 3`."""
    if f.previous() in ("FILTER", "HAVING"):
        return f"put the condition in brackets: {f.previous()} (...)"
    return None


def broken_iri(f: Failure) -> str | None:
    """`<http://a b>`: the lexer sees less-than."""
    if f.found == "LESSTHAN" and "IRIREF" in f.expected:
        return 'an IRI ends with `>` and holds no blanks, nor any of < " { } | ^ ` \\'
    return None


def brackets(f: Failure) -> str | None:
    """`{ (  }`: a bracket that is missing, or one too many."""
    closing = {"RBRACE": "{", "RPAR": "(", "RSQB": "["}
    if f.found == END and f.opened:
        return f"the {_opener(f)} is not closed"
    if f.found in closing and not f.opened:
        return f"nothing is open that this `{f.value}` could close"
    if f.found in closing and f.opened[-1] != closing[f.found]:
        return f"the {_opener(f)} is not closed"
    return None


def _opener(f: Failure) -> str:
    place = f.places.position(f.opened[-1].start_pos or 0)
    return f"`{f.opened[-1]}` of line {place.line}, column {place.column}"


def missing_brace(f: Failure) -> str | None:
    """`OPTIONAL ?s ?p ?o`: a group is missing."""
    if f.expected == {"LBRACE"} and f.before:
        return f"a pattern in braces follows {str(f.before[-1]).upper()}: {{ ... }}"
    if "LBRACE" in f.expected and f.previous() == "WHERE":
        return "the pattern of WHERE stands in braces: WHERE { ... }"
    return None


def missing_dot(f: Failure) -> str | None:
    """Two triple patterns with nothing between them."""
    if f.found in _TERMS and {"DOT", "SEMICOLON"} <= f.expected:
        return "end a triple pattern with `.` before the next one begins"
    return None


def bare_name(f: Failure) -> str | None:
    """`SELCT`, `SELECT x`, `WINDOW w`: a word where a keyword, a variable or an IRI belongs."""
    if f.found != "NAME":
        return None
    if close := get_close_matches(f.value.upper(), sorted(keywords(f.expected)), n=1, cutoff=0.7):
        return f"did you mean {close[0]}?"
    if f.previous() in ("WINDOW", "ON", "STREAM", "GRAPH", "SERVICE", "FROM", "NAMED"):
        return f"a name is an IRI: <...> or a prefixed name such as :{f.value}"
    if "VAR" in f.expected:
        return f"a variable begins with a question mark: ?{f.value}"
    return None


def second_query(f: Failure) -> str | None:
    """Two queries in one text."""
    if f.found in ("SELECT", "CONSTRUCT", "ASK", "REGISTER", "PREFIX") and END in f.expected:
        return "a text holds one query; put the next one into a file of its own"
    return None


SLIPS: tuple[Callable[[Failure], str | None], ...] = (
    unclosed_string,
    foreign_character,
    turtle_prefix,
    update,
    other_stream_languages,
    prefix_declaration,
    window_size,
    window_brackets,
    aggregate_without_brackets,
    select_list,
    order_direction,
    sql_words,
    filter_without_brackets,
    broken_iri,
    brackets,
    missing_brace,
    missing_dot,
    bare_name,
    second_query,
)
