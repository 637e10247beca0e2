"""Orders in which any two terms have a place, and no three go round in a circle.

SPARQL says how two numbers compare, or two dates, and leaves open how a number compares with a
text; Oxigraph then compares their texts. So 20 comes before 100, 100 before "15 kg", and that
before 20: no order that could be sorted by, and Oxigraph ends the process if it finds out. It is
the same with 0.1 as a decimal, a double and a float, since each two are compared in the narrower
type, and with dates of which some have a time zone.

So a condition becomes three that are orders each by itself, and agree with SPARQL where it decides:

    ORDER BY ?v    the kind of ?v: all numbers are of one, and so are texts of all languages
                   the value of ?v: numbers as doubles, dates without a time zone as of UTC
                   the value of ?v as a decimal, since large integers are equal as doubles
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["totally_ordered"]

_OF_ONE_KIND = {"STR", "DATATYPE", "LANG", "STRLEN", "CONCAT", "UCASE", "LCASE", "YEAR", "BOUND"}


def totally_ordered(query: tree.Query) -> tree.Query:
    """Return a query whose orders are total, those of its sub-queries too.

    >>> from rsp_engine.grammar import parse
    >>> text = "SELECT ?v WHERE { ?s ?p ?v } ORDER BY DESC(STR(?v)) ?v DESC(?v)"
    >>> len(totally_ordered(parse(text)).form.modifiers.order_by)
    4
    """
    found = tree.rewrite(query, _with_total_order)
    assert isinstance(found, tree.Query), "rewriting keeps the kind of the root"  # noqa: S101
    return found


def _with_total_order(node: tree.Node) -> tree.Node:
    if not isinstance(node, tree.Modifiers):
        return node
    conditions = [c for each in node.order_by for c in _conditions(each)]
    # What was equal in a condition before is equal: the first one of each expression counts.
    first = {condition.expression: condition for condition in reversed(conditions)}
    kept = tuple(c for c in conditions if first[c.expression] is c)
    return replace(node, order_by=kept)


def _conditions(condition: tree.OrderCondition) -> Iterator[tree.OrderCondition]:
    term = condition.expression
    if _is_of_one_kind(term):
        yield condition
        return
    for key in (_kind(term), _value(term), _cast("decimal", term)):
        yield replace(condition, expression=key)


def _is_of_one_kind(expression: tree.Expression) -> bool:
    match expression:
        case tree.BuiltInCall(name):
            return name in _OF_ONE_KIND
        case tree.Aggregate(name):
            return name in {"COUNT", "GROUP_CONCAT"}
        case _:
            return False


def _kind(term: tree.Expression) -> tree.Expression:
    """Return the datatype of a literal; what is no literal has none, and comes first.

    A text is a string in any language. What is written like a date and is none, as the 30th of
    February, is not of the kind of dates: it has no zone, not even an empty one.
    """
    has_no_language = tree.Comparison("=", _call("LANG", term), _text(""))
    plain = _call("IF", has_no_language, term, _text(""))
    has_zone = _call("COALESCE", _call("STR", _call("ISLITERAL", _call("TZ", plain))), _text(""))
    kind = _call("CONCAT", has_zone, _call("STR", _call("DATATYPE", plain)))
    return _call("IF", _call("ISNUMERIC", term), _text(""), kind)


def _value(term: tree.Expression) -> tree.Expression:
    has_no_zone = tree.Comparison("=", _call("TZ", term), _text(""))
    in_utc = _call(
        "STRDT", _call("CONCAT", _call("STR", term), _text("Z")), _call("DATATYPE", term)
    )
    moment = _call("COALESCE", _call("IF", has_no_zone, in_utc, term), term)
    return _call("IF", _call("ISNUMERIC", term), _cast("double", term), moment)


def _call(name: str, *arguments: tree.Expression) -> tree.Expression:
    return tree.BuiltInCall(name, arguments)


def _cast(kind: str, term: tree.Expression) -> tree.Expression:
    return tree.FunctionCall(tree.Iri(tree.XSD + kind), (term,))


def _text(value: str) -> tree.Literal:
    return tree.Literal(value, tree.XSD + "string")
