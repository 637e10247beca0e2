"""The terminals of the grammar in plain words, for the messages of syntax errors."""

from __future__ import annotations

from rsp_engine.grammar.tree import AGGREGATE_NAMES

__all__ = ["expectation", "keywords"]

_IRI = {"IRIREF", "PNAME_LN", "PNAME_NS"}
_UNSIGNED = {"INTEGER", "DECIMAL", "DOUBLE"}
_SIGNED = {f"{kind}_{sign}" for kind in _UNSIGNED for sign in ("POSITIVE", "NEGATIVE")}
_NUMBER = _UNSIGNED | _SIGNED
_STRING = {"STRING1", "STRING2", "STRING_LONG1", "STRING_LONG2"}
_LITERAL = _NUMBER | _STRING | {"TRUE", "FALSE"}
_CALL = {*AGGREGATE_NAMES, "NAME", "EXISTS", "NOT"}
_NODE = _IRI | _LITERAL | {"VAR", "BLANK_NODE_LABEL", "LPAR", "LSQB"}
_PATTERN = {"OPTIONAL", "MINUS", "GRAPH", "WINDOW", "SERVICE", "FILTER", "BIND", "VALUES", "LBRACE"}
_COMPARISON = {"EQUAL", "NOT_EQUAL", "LESSTHAN", "MORETHAN", "AT_MOST", "AT_LEAST", "IN", "NOT"}
_ARITHMETIC = {"PLUS", "DASH", "STAR", "SLASH"} | _SIGNED
_PATH = _IRI | {"A", "CIRCUMFLEX", "BANG", "LPAR"}
_FORM = {"SELECT", "CONSTRUCT", "ASK", "DESCRIBE"}
_INTEGER = {"INTEGER", "INTEGER_POSITIVE", "INTEGER_NEGATIVE"}
_SUGGESTED_FORM = ("SELECT", "CONSTRUCT", "ASK")  # DESCRIBE parses, but is refused over streams
_BRACKETED = "an expression in brackets"
_OPERATOR = "an operator"
_PATH_OPERATOR = "a path operator"

_CLAUSE = "a clause (FILTER, OPTIONAL, ...)"

# Sets of terminals and the words for them. A phrase is used if the parser accepts all terminals of
# its set; larger sets come first.
_PHRASES: tuple[tuple[set[str], tuple[str, ...]], ...] = (
    (_NODE | _PATTERN, ("a triple pattern", _CLAUSE)),
    (_NODE | {"RBRACE"}, ("`}`", "a triple pattern")),
    (_NODE, ("a variable", "an IRI", "a literal", "a blank node")),
    (_PATTERN, (_CLAUSE,)),
    (_CALL | _IRI | _LITERAL | {"VAR", "LPAR", "BANG", "PLUS", "DASH"}, ("an expression",)),
    (_CALL | _IRI | _LITERAL | {"VAR", "LPAR"}, ("an expression",)),
    (_CALL | _IRI | {"LPAR", "VAR"}, ("a variable", "a function call", _BRACKETED)),
    (_CALL | _IRI | {"LPAR"}, ("a function call", _BRACKETED)),
    (_COMPARISON | _ARITHMETIC | {"AND", "OR"}, (_OPERATOR,)),
    (_ARITHMETIC | {"AND", "OR"}, (_OPERATOR,)),
    ({"AND", "OR"}, (_OPERATOR,)),
    (_PATH | {"VAR"}, ("a property", "a variable", "`a`", "a path")),
    (_PATH, ("a path",)),
    (_IRI | {"A", "CIRCUMFLEX"}, ("an IRI", "`a`", "`^`")),
    ({"VBAR", "SLASH", "QMARK", "STAR", "PLUS"}, (_PATH_OPERATOR,)),
    ({"VBAR", "SLASH"}, (_PATH_OPERATOR,)),
    (_FORM | {"BASE", "PREFIX"}, ("PREFIX", *_SUGGESTED_FORM)),
    (_FORM, _SUGGESTED_FORM),
    (_IRI | {"VAR", "LPAR", "NAME"}, ("a variable", "(... AS ?name)")),
    (_IRI | {"VAR"}, ("a variable", "an IRI")),
    ({"DURATION", "XSD_DURATION", "DASH"} | _INTEGER, ("a duration such as 9m or PT9M",)),
    (_IRI | _LITERAL | {"UNDEF"}, ("an IRI", "a literal", "UNDEF")),
    (_IRI | {"NAME"}, ("a name",)),
    (_LITERAL, ("a literal",)),
    (_IRI, ("an IRI",)),
    (_NUMBER, ("a number",)),
    (_INTEGER, ("a whole number",)),
    (_STRING, ("a string",)),
    ({"GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET"}, ("GROUP BY", "ORDER BY", "LIMIT")),
    ({"RSTREAM", "ISTREAM", "DSTREAM", "STREAM", "QUERY"}, ("RSTREAM", "ISTREAM", "DSTREAM")),
    ({"STEP", "SLIDE"}, ("STEP",)),
)

# Accepted after almost every term or expression, so naming them does not help.
_OBVIOUS = {_OPERATOR, _PATH_OPERATOR, "a datatype", "a language tag", "VALUES", "OFFSET"}

_WORDS = {
    "$END": "the end of the query",
    "VAR": "a variable",
    "NAME": "a name",
    "IRIREF": "an IRI in `<` and `>`",
    "PNAME_NS": "a prefix such as `ex:`",
    "INTEGER": "a whole number",
    "XSD_DURATION": "a duration such as PT9M",
    "LANGTAG": "a language tag",
    "DATATYPE": "a datatype",
    "BLANK_NODE_LABEL": "a blank node",
    "GROUP": "GROUP BY",
    "ORDER": "ORDER BY",
    "A": "`a`",
}

# Terminals that are neither signs nor keywords.
_NO_KEYWORDS = (
    _NUMBER
    | _STRING
    | _IRI
    | {
        *("$END", "VAR", "NAME", "DURATION", "XSD_DURATION", "LANGTAG", "DATATYPE"),
        *("BLANK_NODE_LABEL", "A"),
    }
)

_SIGNS = {
    "AND": "&&",
    "AT_LEAST": ">=",
    "AT_MOST": "<=",
    "BANG": "!",
    "CIRCUMFLEX": "^",
    "COMMA": ",",
    "DASH": "-",
    "DOT": ".",
    "EQUAL": "=",
    "LBRACE": "{",
    "LESSTHAN": "<",
    "LPAR": "(",
    "LSQB": "[",
    "MORETHAN": ">",
    "NOT_EQUAL": "!=",
    "OR": "||",
    "PLUS": "+",
    "QMARK": "?",
    "RBRACE": "}",
    "RPAR": ")",
    "RSQB": "]",
    "SEMICOLON": ";",
    "SLASH": "/",
    "STAR": "*",
    "VBAR": "|",
}


def expectation(terminals: frozenset[str]) -> str:
    """Describe the terminals that the parser accepts: signs, then terms, keywords and the end.

    >>> expectation(frozenset({"RBRACE", "UNION", "DOT"}))
    '`.`, `}` or UNION'
    >>> expectation(frozenset({"IRIREF", "PNAME_LN", "PNAME_NS", "VAR"}))
    'a variable or an IRI'
    """
    remaining, phrases = set(terminals), list[str]()
    for covered, phrase in _PHRASES:
        if covered <= remaining:
            remaining -= covered
            phrases += phrase
    phrases = list(dict.fromkeys([*phrases, *map(_word, sorted(remaining))]))
    helpful = [phrase for phrase in phrases if phrase not in _OBVIOUS] or phrases
    *others, last = sorted(helpful, key=_rank)
    return f"{', '.join(others)} or {last}" if others else last


def _rank(phrase: str) -> int:
    if phrase.startswith("`"):
        return 0
    return 1 if phrase.startswith(("a ", "an ", "(")) else 3 if phrase == _WORDS["$END"] else 2


def _word(terminal: str) -> str:
    if terminal in _SIGNS:
        return f"`{_SIGNS[terminal]}`"
    return _WORDS.get(terminal, terminal)


def keywords(terminals: frozenset[str]) -> frozenset[str]:
    """Return the terminals that are keywords."""
    return frozenset(t for t in terminals if t not in _SIGNS and t not in _NO_KEYWORDS)
