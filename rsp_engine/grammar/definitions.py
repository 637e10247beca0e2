"""Functions defined by an expression: `F(?a, ?b) = ?a / 100 + ?b`.

A call is expanded to the expression, with the arguments in place of the parameters. So the planner
sees plain SPARQL: it can prove a score monotone, and the expression runs wherever the query runs,
inside SERVICE too. (AcquaTop's Listing 1 ranks by such an F.)

>>> from rsp_engine.grammar import check, serialise
>>> query = check("SELECT (F(?x, 2) AS ?y) FROM NAMED WINDOW <u:w> ON <u:s> [RANGE 1m]"
...               " { WINDOW <u:w> { ?x <u:p> ?z } }")
>>> expanded, _ = expand(query, {"F": read_definition("F(?a, ?b) = (?a + 1) / ?b")})
>>> serialise(expanded).partition("FROM")[0].strip()
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
from rsp_engine.grammar.scope import aggregates, parts
from rsp_engine.grammar.validate import validate
from rsp_engine.lazy_registry import LazyRegistry
from rsp_engine.model.terms.xsd import XSD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["USUAL", "Definition", "defined", "expand", "read_definition"]

_HEAD = re.compile(r"\s*(?P<name>.+?)\s*\((?P<parameters>[^()]*)\)\s*=", re.DOTALL)
_PARAMETER = re.compile(r"[?$](\w+)")
_LARGEST, _DEEPEST = 10_000, 100
"""The most nodes and levels of an expanded call.

Functions that call each other twice double in size with each call, and a deep tree exhausts the
stack of what walks it.
"""
_SOURCE = "<function>"
_HINT = "write it as F(?a, ?b) = ?a / 100 + ?b"


@dataclass(frozen=True, slots=True)
class Definition:
    """A function: its name (bare or an IRI), its parameters, and the expression it expands to."""

    name: str
    parameters: tuple[str, ...]
    body: tree.Expression


def read_definition(text: str, prefixes: Mapping[str, str] | None = None) -> Definition:
    """Parse a definition, or raise `QuerySyntaxError` with the place of the mistake.

    >>> read_definition("half(?x) = ?x / 2").parameters
    ('x',)
    """
    head = _HEAD.match(text)
    if head is None:
        raise _wrong(text, "this defines no function", Span(0, len(text)), _HINT)
    declared = dict(prefixes or {})
    name = _name(text, head, declared)
    parameters = tuple(_parameters(text, head))
    body = _expression(text, Span(head.end(), len(text)), declared)
    for node in (*aggregates(body), *(e for e in parts(body) if isinstance(e, tree.Exists))):
        kind = "EXISTS" if isinstance(node, tree.Exists) else "an aggregate"
        hint = "a function is an expression over its parameters"
        raise _wrong(text, f"{kind} is not allowed in a definition", node.span, hint)
    for variable in tree.find(body, tree.Var):
        if variable.name not in parameters:
            hint = f"it has {', '.join(f'?{p}' for p in parameters) or 'none'}"
            message = f"?{variable.name} is not a parameter of {head['name'].strip()}"
            raise _wrong(text, message, variable.span, hint)
    return Definition(name, parameters, body)


def _name(text: str, head: re.Match[str], prefixes: Mapping[str, str]) -> str:
    """Return the name of the function: the bare name, or the IRI with its prefix resolved."""
    span = Span(*head.span("name"))
    of_sparql = f"{head['name']} is a function of SPARQL"
    if head["name"].upper() in (*BUILTINS, *tree.AGGREGATE_NAMES):
        raise _wrong(text, of_sparql, span, "choose another name")
    match _expression(text, span, prefixes, after="()"):
        case tree.NamedCall(name, ()):
            return name
        case tree.FunctionCall(tree.Iri(iri), (), False) if iri.startswith(XSD):
            raise _wrong(text, of_sparql, span, "choose another name")
        case tree.FunctionCall(tree.Iri(iri), (), False):
            return iri
        case _:
            raise _wrong(
                text, f"{head['name']} is not a name", span, "use a word, or an IRI in < >"
            )


def _parameters(text: str, head: re.Match[str]) -> Iterator[str]:
    start, seen = head.start("parameters"), set()
    if not head["parameters"].strip():
        return
    for piece in head["parameters"].split(","):
        span = Span(start, start + len(piece))
        start = span.end + 1
        match = _PARAMETER.fullmatch(piece.strip())
        if match is None:
            raise _wrong(text, f"{piece.strip() or 'nothing'} is not a parameter", span, _HINT)
        if match[1] in seen:
            raise _wrong(text, f"?{match[1]} is already a parameter", span, "choose another name")
        seen.add(match[1])
        yield match[1]


def _expression(
    text: str, part: Span, prefixes: Mapping[str, str], after: str = ""
) -> tree.Expression:
    """Parse a part of a text as an expression, in the SELECT of a query that is made for it.

    The spans of its nodes and of its errors refer to the text, not to that query.
    """
    before = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in prefixes.items()) + "SELECT (("
    query = f"{before}{text[part.start : part.end]}{after}\n) AS ?value) {{ }}"

    def in_text(span: Span) -> Span:
        start, end = (at - len(before) + part.start for at in (span.start, span.end))
        return Span(min(max(start, part.start), part.end), min(max(end, part.start), part.end))

    result = validate(query)
    if result.query is None or result.errors:
        errors = [Diagnostic(d.kind, d.message, in_text(d.span), d.hint) for d in result.errors]
        raise QuerySyntaxError(errors, text, _SOURCE)
    items = list(tree.find(result.query, tree.SelectAs))
    if len(items) != 1:
        raise _wrong(text, "this is more than one expression", part, _HINT)
    return _with_spans(items[0].expression, in_text)


def _with_spans(expression: tree.Expression, change: Callable[[Span], Span]) -> tree.Expression:
    """Return an expression with the spans of all its nodes changed."""
    moved = tree.rewrite_tree(expression, lambda node: replace(node, span=change(node.span)))
    return cast("tree.Expression", moved)


def _wrong(text: str, message: str, span: Span, hint: str) -> QuerySyntaxError:
    return QuerySyntaxError([Diagnostic("syntax", message, span, hint)], text, _SOURCE)


USUAL: Mapping[str, Definition] = LazyRegistry(
    {
        # A double, since the product of two long decimals can exceed the digits of a decimal.
        "norm": lambda: read_definition(
            "norm(?value, ?least, ?largest) = xsd:double(?value - ?least) / (?largest - ?least)",
            {"xsd": XSD},
        ),
    }
)
"""The predefined functions; a definition of the same name replaces one."""


def defined(
    texts: Iterable[str],
    prefixes: Mapping[str, str] | None = None,
    known: Mapping[str, Definition] = USUAL,
) -> dict[str, Definition]:
    """Return the known definitions and those of the texts, by name.

    Raise `BindingError` if a name is defined twice; the names of `USUAL` may be redefined.
    """
    definitions = dict(known)
    for text in texts:
        definition = read_definition(text, prefixes)
        name = definition.name
        if definitions.get(name) not in (None, USUAL.get(name)):
            raise BindingError(f"{name} is defined twice", "remove one of them")
        definitions[name] = definition
    return definitions


def expand(
    query: tree.QueryUnit, definitions: Mapping[str, Definition]
) -> tuple[tree.QueryUnit, list[Diagnostic]]:
    """Return a query with every call of a defined function expanded, and the first wrong call."""
    errors: list[Diagnostic] = []

    def too_large(name: str) -> str:
        return f"the expansion of {name} is too large or nested too deep"

    def expand_call(node: tree.Node, callers: tuple[str, ...]) -> tree.Node:
        name = _called(node)
        if errors or name is None or (definition := definitions.get(name)) is None:
            return node
        arguments = cast("tree.NamedCall | tree.FunctionCall", node).arguments
        parameters = definition.parameters
        message = None
        if name in callers:
            message = f"{name} is defined in terms of itself: {' -> '.join((*callers, name))}"
        elif len(arguments) != len(parameters):
            has, given = _counted(parameters, "parameter"), _counted(arguments, "argument")
            verb = "is" if len(arguments) == 1 else "are"
            message = f"{name} has {has}, but {given} {verb} given"
        elif len(callers) >= _DEEPEST:
            message = too_large(name)
        if message is None:
            values = dict(zip(parameters, arguments, strict=True))
            body = tree.rewrite_tree(
                _with_spans(definition.body, lambda _: node.span),
                lambda inner: expand_call(inner, (*callers, name)),
            )
            expression = tree.rewrite_tree(
                body, lambda inner: values[inner.name] if isinstance(inner, tree.Var) else inner
            )
            if not _is_too_large(expression):
                return expression
            message = too_large(name)
        if not errors:  # the callers fail for the same reason
            errors.append(Diagnostic("semantic", message, node.span))
        return node

    expanded = tree.rewrite_tree(query, lambda node: expand_call(node, ()))
    return cast("tree.QueryUnit", expanded), errors


def _is_too_large(expression: tree.Node) -> bool:
    """Return whether an expression has more nodes or levels than the limits."""
    if next(islice(tree.walk(expression), _LARGEST, None), None) is not None:
        return True
    level = [expression]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in tree.children(node)]
    return bool(level)


def _counted(things: Sequence[object], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def _called(node: tree.Node) -> str | None:
    """Return the name of the function that a node calls; `None` if it cannot be a defined one."""
    match node:
        case tree.NamedCall(name, _):
            return name
        case tree.FunctionCall(function, _, False):
            return function.value
        case _:
            return None
