"""The parser: RSP-QL text to a syntax tree. The only package that imports Lark.

    text -> code point escapes undone -> tokens -> LALR(1) -> Lark's tree -> syntax tree

The grammar is `rspql.lark`. Constraints that a grammar cannot express, such as scopes and grouping,
are checked on the tree by `rsp_engine.grammar.scope`. The modules `build_*` mirror those of `tree`:
each builds the nodes of its namesake, `build_terms` also the paths.

The LALR tables of the grammar are built once per version and kept in the user's cache folder. The
file name contains a hash of the grammar and the versions of Lark and Python, so a stale file is
never read. Without a usable folder the tables are built in memory. They are a pickle, and a pickle
can run any code: they are read only from a file and a folder that belong to the user and that no
one else can write to.

For a text of ASCII there are tables of their own, whose names have only characters of ASCII: to
compile the classes of all other characters takes longer than to parse most queries.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import tempfile
import unicodedata
from functools import cache
from pathlib import Path
from pkgutil import get_data
from typing import TYPE_CHECKING, Any

import lark
from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from rsp_engine.cache_folder import cache_folder, is_mine
from rsp_engine.errors import Diagnostic, Span
from rsp_engine.garbage import no_garbage_collection
from rsp_engine.grammar.parser.error_hints import HINTS
from rsp_engine.grammar.parser.escapes import EscapeOffsets, undo_codepoint_escapes
from rsp_engine.grammar.parser.failure import END, Failure
from rsp_engine.grammar.parser.names import Names
from rsp_engine.grammar.parser.terminal_names import expectation
from rsp_engine.grammar.parser.tree_builder import BuildQueries

if TYPE_CHECKING:
    from rsp_engine.grammar.tree import QueryUnit

__all__ = ["DEEPEST", "read", "tables"]

DEEPEST = 200
"""The deepest nesting of constructs, so that nothing that walks the tree runs out of stack."""
_BEYOND_ASCII = re.compile(r"\\u[0-9A-F]{4}|\\U[0-9A-F]{8}")
"""A character that is not of ASCII, in the classes of the grammar."""


def read(written: str) -> tuple[QueryUnit | None, list[Diagnostic]]:
    """Return the syntax tree of a text, or `None`, and its syntax errors.

    A tree that comes with errors serves only to find further ones; it must not be evaluated.
    """
    with no_garbage_collection():
        return _read(written)


def _read(written: str) -> tuple[QueryUnit | None, list[Diagnostic]]:
    text, places, diagnostics = undo_codepoint_escapes(written)
    parser = tables(is_ascii=text.isascii())
    try:
        raw = parser.parse(text)
    except UnexpectedInput as error:
        failure = Failure.of(error, text, places, parser)
        span = places.written(failure.span.start, failure.span.end)
        hints = (rule(failure) for rule in HINTS)
        hint = next((hint for hint in hints if hint is not None), None)
        return None, [*diagnostics, Diagnostic("syntax", _message(failure), span, hint)]
    if (deep := _too_deep(raw)) is not None:
        message, hint = "this is nested too deep", "flatten the pattern, or split the query"
        diagnostics.append(Diagnostic("syntax", message, _span(deep.meta, places), hint))
        return None, diagnostics
    builder = BuildQueries(_read_prologue(raw, places))
    query: QueryUnit = _build(builder, raw, places)
    return query, [*diagnostics, *builder.names.diagnostics(), *builder.diagnostics]


def _message(failure: Failure) -> str:
    """Describe a failure: what was expected, and what was found."""
    if not failure.before and failure.found == END:
        return "there is no query here"
    expected = expectation(failure.expected)
    if failure.found == END:
        return f"the query ends too early: expected {expected}"
    if failure.found is not None:
        return f"expected {expected}, found `{_short(failure.value)}`"
    if failure.value in ("'", '"'):
        return "this string is not closed, or it contains an unknown escape"
    return f"unexpected character {_character(failure.value)}"


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= 40 else f"{line[:39]}…"


def _character(character: str) -> str:
    name = unicodedata.name(character, f"U+{ord(character):04X}")
    return f"`{character}` ({name})" if character.isprintable() else name


def _too_deep(raw: Tree[Token]) -> Tree[Token] | None:
    """Return a construct that is nested deeper than `DEEPEST`, if there is one."""
    level = [raw]
    for _ in range(DEEPEST):
        level = [c for node in level for c in node.children if isinstance(c, Tree)]
    return level[0] if level else None


def _read_prologue(raw: Tree[Token], places: EscapeOffsets) -> Names:
    """Read all declarations, those after REGISTER included, before any name is resolved."""
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
    """Call the builder's method for each rule, children before parents, without recursion."""
    built: dict[int, object] = {}
    for node in raw.iter_subtrees():
        children = [built.pop(id(c)) if isinstance(c, Tree) else c for c in node.children]
        span = Span(0, 0) if node.meta.empty else _span(node.meta, places)
        built[id(node)] = getattr(builder, node.data)(span, children)
    return built[id(raw)]


def _span(place: Any, places: EscapeOffsets) -> Span:  # noqa: ANN401 - a Token or a Meta of Lark
    return places.written(place.start_pos, place.end_pos)


@cache
def tables(*, is_ascii: bool = False) -> lark.Lark:
    """Return Lark's parser of the grammar, from the cache if possible.

    With `is_ascii`, it parses texts of ASCII only, and to the same trees.
    """
    grammar = (get_data("rsp_engine.grammar", "rspql.lark") or b"").decode()
    if is_ascii:
        # The letter is in these classes anyway. Lark sorts terminals by the length of their text.
        grammar = _BEYOND_ASCII.sub("A", grammar)
    folder = cache_folder()
    if folder is None:
        return _make(grammar)
    version = f"{grammar}\0{lark.__version__}\0{sys.version_info[:2]}"
    path = folder / f"rspql-{hashlib.sha256(version.encode()).hexdigest()[:16]}.tables"
    # A file that is absent or damaged in any way is built again.
    with contextlib.suppress(Exception):
        return _load(path)
    parser = _make(grammar)
    with contextlib.suppress(OSError):
        _save(parser, path)
    return parser


def _make(grammar: str) -> lark.Lark:
    return lark.Lark(
        grammar,
        start="unit",
        parser="lalr",
        lexer="basic",
        propagate_positions=True,
        maybe_placeholders=True,
    )


def _load(path: Path) -> lark.Lark:
    with path.open("rb") as file:
        if not is_mine(os.fstat(file.fileno())):
            raise PermissionError(path)
        return lark.Lark.load(file)


def _save(parser: lark.Lark, path: Path) -> None:
    """Write a temporary file and rename it, so that other processes see the whole file or none."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        parser.save(file)
    Path(file.name).replace(path)
