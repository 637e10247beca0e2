"""The parser: RSP-QL text to syntax tree. The only room that knows Lark.

    text -> escapes undone -> tokens -> LALR -> raw tree -> syntax tree

What SPARQL's grammar says is in `rspql.lark`; what its notes say and a grammar cannot (scopes,
grouping) is checked on the tree by `rsp_engine.grammar.scope`.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from rsp_engine.errors import Diagnostic, Span
from rsp_engine.grammar.parser.build_queries import BuildQueries
from rsp_engine.grammar.parser.diagnose import diagnose
from rsp_engine.grammar.parser.escapes import EscapeOffsets, undo_codepoint_escapes
from rsp_engine.grammar.parser.failure import Failure
from rsp_engine.grammar.parser.names import Names
from rsp_engine.grammar.parser.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.grammar.tree import QueryUnit

__all__ = ["DEEPEST", "read"]

DEEPEST = 200
"""How deep constructs may be nested, so that nothing that walks the tree runs out of stack."""


def read(written: str) -> tuple[QueryUnit | None, list[Diagnostic]]:
    """Return the syntax tree of a text, or nothing, and what is wrong with it.

    A tree that comes with diagnostics must not be used: it is there to find more of them.
    """
    with _no_garbage_collection():
        return _read(written)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Let the garbage collector rest: trees have no cycles, and it would walk them for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(written: str) -> tuple[QueryUnit | None, list[Diagnostic]]:
    text, places, diagnostics = undo_codepoint_escapes(written)
    try:
        raw = tables().parse(text)
    except UnexpectedInput as error:
        failure = Failure.of(error, text, places, tables())
        span = places.written(failure.span.start, failure.span.end)
        message, hint = diagnose(failure)
        return None, [*diagnostics, Diagnostic("syntax", message, span, hint)]
    if (deep := _too_deep(raw)) is not None:
        message, hint = "this is nested too deep", "flatten the pattern, or split the query"
        diagnostics.append(Diagnostic("syntax", message, _span(deep.meta, places), hint))
        return None, diagnostics
    builder = BuildQueries(_read_prologue(raw, places))
    query: QueryUnit = _build(builder, raw, places)
    return query, [*diagnostics, *builder.names.diagnostics(), *builder.diagnostics]


def _too_deep(raw: Tree[Token]) -> Tree[Token] | None:
    """Return a construct that is nested too deep, if there is one."""
    level = [raw]
    for _ in range(DEEPEST):
        level = [c for node in level for c in node.children if isinstance(c, Tree)]
    return level[0] if level else None


def _read_prologue(raw: Tree[Token], places: EscapeOffsets) -> Names:
    """Read all declarations, those after REGISTER as well, before any name is resolved."""
    names = Names()
    prologue, register, _ = raw.children
    prologues = [prologue, *(register.children[-1:] if isinstance(register, Tree) else [])]
    for declaration in (d for p in prologues if isinstance(p, Tree) for d in p.children):
        if not isinstance(declaration, Tree):
            continue
        *name, iri = (c for c in declaration.children if isinstance(c, Token))
        span = _span(declaration.meta, places)
        if name:
            names.declare_prefix(str(name[0]), str(iri), _span(iri, places), span)
        else:
            names.declare_base(str(iri), _span(iri, places), span)
    return names


def _build(builder: BuildQueries, raw: Tree[Token], places: EscapeOffsets) -> Any:  # noqa: ANN401
    """Call the builder's method of each rule, children before parents, without recursion."""
    built: dict[int, object] = {}
    for node in raw.iter_subtrees():
        children = [built.pop(id(c)) if isinstance(c, Tree) else c for c in node.children]
        span = Span(0, 0) if node.meta.empty else _span(node.meta, places)
        built[id(node)] = getattr(builder, node.data)(span, children)
    return built[id(raw)]


def _span(place: Any, places: EscapeOffsets) -> Span:  # noqa: ANN401 - a Token or a Meta of Lark
    return places.written(place.start_pos, place.end_pos)
