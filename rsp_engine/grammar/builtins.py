"""The built-in functions of SPARQL 1.1 (section 17.4) and their arities."""

from __future__ import annotations

from math import inf

__all__ = ["BUILTINS", "arity_text"]

_ONE = """
    STR LANG DATATYPE BOUND IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI
    YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512
    ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC
"""
_TWO = "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM"

BUILTINS: dict[str, tuple[int, float]] = {
    **dict.fromkeys(("RAND", "NOW", "UUID", "STRUUID"), (0, 0)),
    **dict.fromkeys(_ONE.split(), (1, 1)),
    **dict.fromkeys(_TWO.split(), (2, 2)),
    "BNODE": (0, 1),
    "SUBSTR": (2, 3),
    "REGEX": (2, 3),
    "IF": (3, 3),
    "REPLACE": (3, 4),
    "CONCAT": (0, inf),
    "COALESCE": (0, inf),
}


def arity_text(name: str) -> str:
    """Describe the number of arguments that a function takes, unless it takes any number.

    >>> arity_text("SUBSTR"), arity_text("NOW")
    ('2 or 3 arguments', 'no arguments')
    """
    least, most = BUILTINS[name]
    if least == most:
        return {0: "no arguments", 1: "1 argument"}.get(least, f"{least} arguments")
    return f"{least} or {most:.0f} arguments"
