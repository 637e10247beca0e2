"""Hints for syntax errors: common mistakes, recognised at the place where the parser stops.

A rule is a function from a failure to a hint, or `None` if it does not apply; its docstring shows
the mistake. The first rule of `HINTS` that applies gives the hint.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.grammar.parser.failure import END
from rsp_engine.grammar.parser.terminal_names import keywords
from rsp_engine.grammar.tree import AGGREGATE_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rsp_engine.grammar.parser.failure import Failure

__all__ = ["HINTS"]

_UPDATE = {"INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH"}
_CLAUSES = {"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LBRACE"}
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
_UNITS = {
    word: unit
    for unit, words in {
        "ms": "ms msec msecs millis millisecond milliseconds",
        "s": "s sec secs second seconds",
        "m": "m min mins minute minutes",
        "h": "h hr hrs hour hours",
        "d": "d day days",
    }.items()
    for word in words.split()
}


def unclosed_string(f: Failure) -> str | None:
    """`"abc` without a closing quote, or with an unknown escape."""
    if f.found is None and f.value in ("'", '"'):
        # The lexer reads the first two of three quotes as an empty string.
        long = f.text.endswith(f.value * 3, 0, f.span.end)
        if not long and (escape := _unknown_escape(f)):
            return f"`{escape}` is not an escape: write a backslash in a string as `\\\\`"
        line = f.text[f.span.start :].split("\n", 1)[0]
        backslash = ", and write a backslash in it as `\\\\`" if "\\" in line else ""
        return f"close it with {f.value * 3 if long else f.value}{backslash}"
    return None


def _unknown_escape(f: Failure) -> str | None:
    string = re.compile(rf"{f.value}(?:[^{f.value}\\\n\r]|\\.)*{f.value}").match(
        f.text, f.span.start
    )
    escapes = re.findall(r"\\.", string[0]) if string else []
    return next((e for e in escapes if e[1] not in "tbnrf\\\"'"), None)


def foreign_character(f: Failure) -> str | None:
    """Characters that a word processor inserts, operators of other languages, stray backslashes."""
    hints = {
        "“”„‟«»": 'use straight double quotes: "',
        "‘’‚‛": "use straight single quotes: '",
        "\u00a0\u200b\ufeff\u2007\u202f": "this is an invisible character: replace it by a blank",
        "–—−": "use the plain hyphen: -",
        "&": "write `&&` for and",
        "%": "SPARQL has no remainder operator",
        "\\": "a backslash is allowed only in strings, prefixed names and \\u0041 escapes",
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
        return "remove the dot after the PREFIX declaration"
    return None


def update(f: Failure) -> str | None:
    """A request of SPARQL Update."""
    if f.value.upper() in _UPDATE and "SELECT" in f.expected:
        return "this is SPARQL Update, which changes data: RSP-QL has only queries"
    return None


def other_stream_languages(f: Failure) -> str | None:
    """Clauses of C-SPARQL and CQELS."""
    word = f.value.upper()
    if f.previous() == "FROM" and word == "WINDOW":
        return "write FROM NAMED WINDOW"
    if f.previous() in ("FROM", "NAMED") and word == "STREAM":
        return "write FROM NAMED WINDOW :w ON STREAM :s [RANGE ...], and WINDOW :w { ... } in WHERE"
    if word == "STREAM" and "FILTER" in f.expected:
        return "declare FROM NAMED WINDOW :w ON STREAM :s [...], and write WINDOW :w { ... } here"
    if word in ("RSTREAM", "ISTREAM", "DSTREAM"):
        return f"write REGISTER {word} name AS before the query"
    if word == "COMPUTED":
        return "the STEP of its window sets how often a query is evaluated"
    return None


def prefix_declaration(f: Failure) -> str | None:
    """`PREFIX ex <...>` and `PREFIX ex: http://...`."""
    if f.previous() == "PREFIX" and f.value.isalnum():
        return f"put a colon after the name: PREFIX {f.value}: <...>"
    if f.previous(2) == "PREFIX" and "IRIREF" in f.expected:
        return "put the IRI in `<` and `>`"
    return None


def window_size(f: Failure) -> str | None:
    """`[RANGE 10 minutes]`, `[RANGE 9m, STEP 3m]` and other mistakes in the size of a window."""
    inside = bool(f.opened) and f.opened[-1] == "["
    if inside and f.previous(2) in ("RANGE", "STEP", "SLIDE") and f.previous().isdecimal():
        if unit := _UNITS.get(f.value.lower()):
            return f"write the unit right after the number: {f.previous()}{unit}"
        if f.found == "NAME":
            return "the units are ms, s, m, h and d"
    if f.found == "NAME" and inside and "STEP" in f.expected:
        return "STEP sets how far the window moves: [RANGE 9m STEP 3m]"
    if f.found == "COMMA" and inside and {"STEP"} <= f.expected:
        return "remove the comma between RANGE and STEP"
    if inside and "DURATION" in f.expected:
        return "a duration is a number with a unit (500ms, 10s, 9m, 2h, 1d) or PT9M"
    if f.found == "DURATION" and f.expected >= {"INTEGER"} and inside:
        return "a window over elements takes a number of elements; RANGE takes a duration"
    return None


def window_brackets(f: Failure) -> str | None:
    """`ON :s RANGE 9m` and `[STEP 3m RANGE 9m]`."""
    if f.expected == {"LSQB"} and f.found != "SLASH":
        return "put the size of the window in brackets: [RANGE 9m STEP 3m]"
    if f.found in ("STEP", "SLIDE") and "RANGE" in f.expected:
        return "put RANGE first: [RANGE 9m STEP 3m]"
    return None


def aggregate_without_brackets(f: Failure) -> str | None:
    """`SELECT COUNT(?x) AS ?n`."""
    if f.found in AGGREGATE_NAMES and _in_select(f):
        return f"put brackets around it, and give it a name: ({f.found}(?x) AS ?n)"
    return None


def select_list(f: Failure) -> str | None:
    """Commas, missing brackets and missing names in SELECT, and a missing AS after REGISTER."""
    if f.found == "COMMA" and _in_select(f):
        return "separate the variables of SELECT by blanks, not by commas"
    if f.found == "RPAR" and "AS" in f.expected and _distinct_of_a_variable(f):
        word = f.previous(3)
        return f"write {word} without brackets: {word} {f.before[-1]}"
    if f.found in ("RPAR", "VAR") and "AS" in f.expected and f.opened:
        return "give the expression a name: (... AS ?name)"
    if f.found == "AS" and _in_select(f):
        return "put brackets around it: (... AS ?name)"
    if f.expected == {"AS"} and _in_select(f):
        return "give it a name: ... AS ?name"
    if f.expected == {"AS"} and "REGISTER" in (f.previous(2), f.previous(3)):
        return "put AS between the name and the query: REGISTER RSTREAM :name AS SELECT ..."
    return None


def _distinct_of_a_variable(f: Failure) -> bool:
    return f.previous(3) in ("DISTINCT", "REDUCED") and f.previous(2) == "("


def _in_select(f: Failure) -> bool:
    clause = next((str(t).upper() for t in reversed(f.before) if t.type in _CLAUSES), "")
    return clause == "SELECT" and not f.opened


def order_direction(f: Failure) -> str | None:
    """`ORDER BY ?x DESC`, `ORDER BY DESC ?x`, `ORDER BY ?x, ?y` and `LIMIT 10, 20`."""
    if f.expected == {"LPAR"} and f.previous() in ("ASC", "DESC") and f.before[-2].type == "VAR":
        return f"put the direction first: {f.previous()}({f.before[-2]})"
    if f.expected == {"LPAR"} and f.previous() in ("ASC", "DESC"):
        shown = f.value if f.found == "VAR" else "..."
        return f"put brackets around it: {f.previous()}({shown})"
    if f.found == "COMMA" and f.previous(2) == "LIMIT":
        return "write LIMIT and OFFSET apart: LIMIT 10 OFFSET 20"
    if f.found == "COMMA" and any(t.type in ("ORDER", "GROUP") for t in f.before) and not f.opened:
        return "separate the conditions of ORDER BY and GROUP BY by blanks, not by commas"
    return None


def order_of_clauses(f: Failure) -> str | None:
    """`LIMIT 10 ORDER BY ?x`, `WHERE { ... } FROM ...`, `WHERE { ... } FILTER (...)`."""
    if f.opened or END not in f.expected:
        return None
    if f.found in ("GROUP", "HAVING", "ORDER", "LIMIT"):
        return "the order is WHERE { ... } GROUP BY, HAVING, ORDER BY, LIMIT"
    if f.found == "FROM":
        return "put FROM before WHERE"
    if f.found in ("FILTER", "BIND", "OPTIONAL", "MINUS", "UNION", "WINDOW", "SERVICE", "GRAPH"):
        return f"put {f.found} inside the braces of WHERE"
    return None


def sql_words(f: Failure) -> str | None:
    """Keywords and operators of SQL, and the semicolon at its end."""
    word = f.previous() if _after_a_word(f) else f.value.upper() if f.found == "NAME" else ""
    if word == "IS" and "RPAR" not in f.expected:
        return None
    if hint := _SQL_WORDS.get(word):
        return hint
    if f.previous() == "=" and f.found in ("LESSTHAN", "MORETHAN"):
        return f"write `{f.value}=`"
    if f.found == "EQUAL" and f.previous() == "=":
        return "write a single `=`"
    if f.found == "IRIREF" and f.value == "<>":
        return "write `!=` for not equal"
    if f.found == "SEMICOLON" and END in f.expected:
        return "remove the semicolon at the end of the query"
    return None


def _after_a_word(f: Failure) -> bool:
    """Return whether the previous word was read as a function name, but no bracket follows."""
    return f.expected == {"LPAR"} and bool(f.before) and f.before[-1].type == "NAME"


def filter_without_brackets(f: Failure) -> str | None:
    """`FILTER ?x > 3`, `HAVING ?x > 3` and `BIND ?x AS ?y`."""
    if f.previous() == "BIND":
        return "put it in brackets: BIND (... AS ?name)"
    if f.previous() in ("FILTER", "HAVING"):
        return f"put the condition in brackets: {f.previous()} (...)"
    return None


def broken_iri(f: Failure) -> str | None:
    """`http://a` and `<http://a b>`, where the lexer reads `<` as less-than."""
    if f.found == "SLASH" and f.previous().endswith(":"):
        return "put the IRI in `<` and `>`"
    if f.found == "LESSTHAN" and "IRIREF" in f.expected:
        return 'an IRI ends with `>` and contains no blanks and none of < " { } | ^ ` \\'
    return None


def brackets(f: Failure) -> str | None:
    """`{ ( }`: a bracket that is not closed, or one too many."""
    closing = {"RBRACE": "{", "RPAR": "(", "RSQB": "["}
    if f.found == END and f.opened:
        return f"the {_opener(f)} is not closed"
    if f.found in closing and closing[f.found] not in f.opened:
        return f"this `{f.value}` closes nothing"
    if f.found in closing and f.opened[-1] != closing[f.found]:
        return f"the {_opener(f)} is not closed"
    after = {"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET"}
    if f.found in after and f.opened:
        return f"the {_opener(f)} is not closed"
    return None


def _opener(f: Failure) -> str:
    place = f.places.position(f.opened[-1].start_pos or 0)
    return f"`{f.opened[-1]}` of line {place.line}, column {place.column}"


def missing_brace(f: Failure) -> str | None:
    """`OPTIONAL ?s ?p ?o`: braces are missing."""
    if f.expected != {"LBRACE"}:
        return None
    if "VALUES" in (f.previous(2), f.previous(3)) or f.previous() == ")":
        return "put the values in braces: VALUES ?x { 1 2 }, VALUES (?x ?y) { (1 2) (3 4) }"
    words = " ".join(str(t) for t in f.before[-2:] if t.type != "LBRACE")
    shown = words if f.previous(2) in ("WINDOW", "GRAPH", "SERVICE", "SILENT") else f.before[-1]
    return f"put a pattern in braces after it: {shown} {{ ... }}"


def union_of_groups(f: Failure) -> str | None:
    """`WINDOW :a { ... } UNION WINDOW :b { ... }`."""
    if f.found == "UNION" or f.previous() == "UNION":
        return "put UNION between groups in braces: { ... } UNION { ... }"
    return None


def datatype(f: Failure) -> str | None:
    """`"5"^xsd:integer`."""
    if f.found == "CIRCUMFLEX" and f.before and f.before[-1].type.startswith("STRING"):
        return 'put the datatype of a literal after `^^`: "5"^^xsd:integer'
    return None


def missing_dot(f: Failure) -> str | None:
    """Two triple patterns without a dot between them."""
    if f.found in _TERMS and {"DOT", "SEMICOLON"} <= f.expected:
        return "end a triple pattern with `.` before the next one begins"
    return None


def bare_name(f: Failure) -> str | None:
    """`SELCT`, `SELECT x`, `WINDOW w`: a word where a keyword, a variable or an IRI belongs."""
    if _after_a_word(f):
        return _word_alone(f)
    if f.found != "NAME":
        return None
    if close := get_close_matches(f.value.upper(), sorted(keywords(f.expected)), n=1, cutoff=0.7):
        return f"did you mean {close[0]}?"
    if f.previous() in ("WINDOW", "ON", "STREAM", "GRAPH", "SERVICE", "FROM", "NAMED"):
        return f"a name is an IRI: <...> or a prefixed name such as :{f.value}"
    if "VAR" in f.expected:
        return f"a variable begins with a question mark: ?{f.value}"
    return None


def _word_alone(f: Failure) -> str:
    word = str(f.before[-1])
    clauses = ("DISTINCT", "REDUCED", "FROM", "WHERE", "ORDER", "GROUP", "LIMIT", "TRUE", "FALSE")
    if close := get_close_matches(word.upper(), clauses, n=1, cutoff=0.7):
        return f"did you mean {close[0]} instead of {word}?"
    return f"a variable begins with a question mark: ?{word}"


def second_query(f: Failure) -> str | None:
    """Two queries in one text."""
    if f.found in ("SELECT", "CONSTRUCT", "ASK", "REGISTER", "PREFIX") and END in f.expected:
        return "write one query per file; put the next one into its own file"
    return None


HINTS: tuple[Callable[[Failure], str | None], ...] = (
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
    order_of_clauses,
    sql_words,
    filter_without_brackets,
    broken_iri,
    brackets,
    union_of_groups,
    missing_brace,
    datatype,
    missing_dot,
    bare_name,
    second_query,
)
