"""Functions that are defined by an expression: `F(?a, ?b) = ?a / 100 + ?b`.

A call of one stands for its expression, with the arguments in the places of the parameters. So
what is planned and evaluated is SPARQL and nothing else: a score can be proved monotone, it runs
wherever the query runs, and inside of SERVICE too. (AcquaTop's Listing 1 ranks by such an F.)

>>> from rsp_engine.grammar import check, serialise
>>> query = check("SELECT (F(?x, 2) AS ?y) FROM NAMED WINDOW <u:w> ON <u:s> [RANGE 1m]"
...               " { WINDOW <u:w> { ?x <u:p> ?z } }")
>>> made, _ = expand(query, {"F": read_definition("F(?a, ?b) = (?a + 1) / ?b")})
>>> serialise(made).partition("FROM")[0].strip()
'SELECT ((?x + 1) / 2 AS ?y)'
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, cast

from rsp_engine.errors import BindingError, Diagnostic, QuerySyntaxError, Span
from rsp_engine.grammar import tree
from rsp_engine.grammar.builtins import BUILTINS
from rsp_engine.grammar.expressions import aggregates, parts
from rsp_engine.grammar.validate import validate
from rsp_engine.model.terms.term import XSD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["USUAL", "Definition", "defined", "expand", "read_definition"]

_HEAD = re.compile(r"\s*(?P<name>.+?)\s*\((?P<parameters>[^()]*)\)\s*=", re.DOTALL)
_PARAMETER = re.compile(r"[?$](\w+)")
_LARGEST, _DEEPEST = 10_000, 100
"""So many parts and levels the expression may have that a call stands for."""
_SOURCE = "<function>"
_HINT = "write it as F(?a, ?b) = ?a / 100 + ?b"


@dataclass(frozen=True, slots=True)
class Definition:
    """A function: what it is called, a bare name or an IRI, and what a call of it stands for."""

    name: str
    parameters: tuple[str, ...]
    body: tree.Expression


def read_definition(text: str, prefixes: Mapping[str, str] | None = None) -> Definition:
    """Read a definition, or raise what is wrong with it, with its place.

    >>> read_definition("half(?x) = ?x / 2").parameters
    ('x',)
    """
    head = _HEAD.match(text)
    if head is None:
        raise _wrong(text, "this defines no function", Span(0, len(text)), _HINT)
    known = dict(prefixes or {})
    name = _name(text, head, known)
    parameters = tuple(_parameters(text, head))
    body = _expression(text, Span(head.end(), len(text)), known)
    for node in (*aggregates(body), *(e for e in parts(body) if isinstance(e, tree.Exists))):
        kind = "EXISTS" if isinstance(node, tree.Exists) else "an aggregate"
        hint = "a function is an expression over its parameters"
        raise _wrong(text, f"{kind} cannot stand in a definition", node.span, hint)
    for variable in tree.find(body, tree.Var):
        if variable.name not in parameters:
            hint = f"it has {', '.join(f'?{p}' for p in parameters) or 'none'}"
            told = f"?{variable.name} is no parameter of {head['name'].strip()}"
            raise _wrong(text, told, variable.span, hint)
    return Definition(name, parameters, body)


def _name(text: str, head: re.Match[str], prefixes: Mapping[str, str]) -> str:
    """Return the name of what is called like this, as a call of it has it."""
    span = Span(*head.span("name"))
    of_sparql = f"{head['name']} is a function of SPARQL"
    if head["name"].upper() in (*BUILTINS, *tree.AGGREGATE_NAMES):
        raise _wrong(text, of_sparql, span, "take another name")
    match _expression(text, span, prefixes, after="()"):
        case tree.NamedCall(name, ()):
            return name
        case tree.FunctionCall(tree.Iri(iri), (), False) if iri.startswith(XSD):
            raise _wrong(text, of_sparql, span, "take another name")
        case tree.FunctionCall(tree.Iri(iri), (), False):
            return iri
        case _:
            raise _wrong(
                text, f"{head['name']} is not a name", span, "take a word, or an IRI in < >"
            )


def _parameters(text: str, head: re.Match[str]) -> Iterator[str]:
    start, seen = head.start("parameters"), set()
    if not head["parameters"].strip():
        return
    for written in head["parameters"].split(","):
        at = Span(start, start + len(written))
        start = at.end + 1
        found = _PARAMETER.fullmatch(written.strip())
        if found is None:
            raise _wrong(text, f"{written.strip() or 'nothing'} is no parameter", at, _HINT)
        if found[1] in seen:
            raise _wrong(text, f"?{found[1]} is a parameter already", at, "take another name")
        seen.add(found[1])
        yield found[1]


def _expression(
    text: str, part: Span, prefixes: Mapping[str, str], after: str = ""
) -> tree.Expression:
    """Read a part of a text as an expression, whose nodes know their places in the text."""
    before = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in prefixes.items()) + "SELECT (("
    written = f"{before}{text[part.start : part.end]}{after}\n) AS ?value) {{ }}"

    def place(span: Span) -> Span:
        start, end = (at - len(before) + part.start for at in (span.start, span.end))
        return Span(min(max(start, part.start), part.end), min(max(end, part.start), part.end))

    found = validate(written)
    if found.query is None or found.errors:
        told = [Diagnostic(d.kind, d.message, place(d.span), d.hint) for d in found.errors]
        raise QuerySyntaxError(told, text, _SOURCE)
    made = list(tree.find(found.query, tree.SelectAs))
    if len(made) != 1:
        raise _wrong(text, "this is more than one expression", part, _HINT)
    return _placed(made[0].expression, place)


def _placed(expression: tree.Expression, place: Callable[[Span], Span]) -> tree.Expression:
    """Return an expression whose nodes stand elsewhere."""
    moved = tree.rewrite_tree(expression, lambda node: replace(node, span=place(node.span)))
    return cast("tree.Expression", moved)


def _wrong(text: str, message: str, span: Span, hint: str) -> QuerySyntaxError:
    return QuerySyntaxError([Diagnostic("syntax", message, span, hint)], text, _SOURCE)


USUAL: Mapping[str, Definition] = {
    made.name: made
    for made in (
        # A double, since a decimal of many digits times another one would have too many of them.
        read_definition(
            "norm(?value, ?least, ?largest) = xsd:double(?value - ?least) / (?largest - ?least)",
            {"xsd": XSD},
        ),
    )
}
"""What is defined from the start."""


def defined(
    texts: Iterable[str],
    prefixes: Mapping[str, str] | None = None,
    known: Mapping[str, Definition] = USUAL,
) -> dict[str, Definition]:
    """Return what is known with further definitions. A name is defined once, but for usual ones."""
    found = dict(known)
    for text in texts:
        made = read_definition(text, prefixes)
        if found.get(made.name) not in (None, USUAL.get(made.name)):
            raise BindingError(f"{made.name} is defined twice", "leave one of them out")
        found[made.name] = made
    return found


def expand(
    query: tree.QueryUnit, definitions: Mapping[str, Definition]
) -> tuple[tree.QueryUnit, list[Diagnostic]]:
    """Return a query with every call of a defined function replaced, and which calls are wrong."""
    wrong: list[Diagnostic] = []

    def too_large(name: str) -> str:
        return f"what {name} stands for here is too large, or nested too deep"

    def put(node: tree.Node, inside: tuple[str, ...]) -> tree.Node:
        name = _called(node)
        if wrong or name is None or (found := definitions.get(name)) is None:
            return node
        arguments = cast("tree.NamedCall | tree.FunctionCall", node).arguments
        told = None
        if name in inside:
            told = f"{name} is defined by itself: {' -> '.join((*inside, name))}"
        elif len(arguments) != len(found.parameters):
            has, given = _counted(found.parameters, "parameter"), _counted(arguments, "argument")
            told = f"{name} has {has}, and {given} {'is' if len(arguments) == 1 else 'are'} given"
        elif len(inside) >= _DEEPEST:
            told = too_large(name)
        if told is None:
            put_in = dict(zip(found.parameters, arguments, strict=True))
            within = (*inside, name)
            body = tree.rewrite_tree(
                _placed(found.body, lambda _: node.span), lambda inner: put(inner, within)
            )
            made = tree.rewrite_tree(
                body, lambda inner: put_in[inner.name] if isinstance(inner, tree.Var) else inner
            )
            if not _is_too_large(made):
                return made
            told = too_large(name)
        if not wrong:  # whatever calls this one is wrong for the same reason
            wrong.append(Diagnostic("semantic", told, node.span))
        return node

    made = tree.rewrite_tree(query, lambda node: put(node, ()))
    return cast("tree.QueryUnit", made), wrong


def _is_too_large(expression: tree.Node) -> bool:
    """Tell whether an expression has too many parts, or too many levels, to be walked."""
    if next(islice(tree.walk(expression), _LARGEST, None), None) is not None:
        return True
    level = [expression]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in tree.children(node)]
    return bool(level)


def _counted(things: Sequence[object], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def _called(node: tree.Node) -> str | None:
    """Return the name of the function that a node calls, if it is one that may be defined."""
    match node:
        case tree.NamedCall(name, _):
            return name
        case tree.FunctionCall(function, _, False):
            return function.value
        case _:
            return None
