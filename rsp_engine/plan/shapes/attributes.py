"""The attributes of objects in a query: patterns over several windows that have a key in common.

    { WINDOW :r1 { ?flow :size ?s } }           WINDOW :rain { ?place :points ?rain }
    UNION { WINDOW :r2 { ?flow :size ?s } }     OPTIONAL { WINDOW :wind { ?place :points ?wind } }
    ... GROUP BY ?flow, SUM(?s)                 ... ?rain + COALESCE(?wind, 0)

Each block is one WINDOW with plain triple patterns, one unless the triples of a solution come in
one element, and filters on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.grammar.triples import plain_terms
from rsp_engine.plan.shapes.topk import StreamSide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.plan.options import MatchRule

__all__ = ["AttributeBlock", "NotIncompleteError", "blocks_of", "has_optional_windows"]


class NotIncompleteError(Exception):
    """Why a query does not collect the attributes of objects from several streams."""


@dataclass(frozen=True, slots=True)
class AttributeBlock:
    """A WINDOW, the number of its window, and what is matched in it; it may be missing."""

    clause: tree.WindowPattern
    scan: int
    side: StreamSide
    is_optional: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the block."""
        return self.side.names


def has_optional_windows(query: tree.QueryUnit) -> bool:
    """Tell whether a query has WINDOW clauses in UNION or OPTIONAL."""
    select = query.form
    if not isinstance(select, tree.SelectForm):
        return False
    kinds = (
        e for e in select.where.elements if isinstance(e, tree.UnionPattern | tree.OptionalPattern)
    )
    return any(True for element in kinds for _ in tree.find(element, tree.WindowPattern))


def blocks_of(
    query: tree.QueryUnit, select: tree.SelectForm, match: MatchRule
) -> tuple[AttributeBlock, ...]:
    """Return the blocks of a query, or raise why it has none: all of a UNION, or some OPTIONAL."""
    elements = select.where.elements
    if any(True for _ in tree.find(select.where, tree.Exists)):
        raise NotIncompleteError("EXISTS in a filter looks beyond the object")
    if query.values is not None:
        raise NotIncompleteError("VALUES after the query joins what is not in the stream")
    match elements:
        case (tree.UnionPattern(groups),):
            return tuple(_block(query, g.elements, match, is_optional=False) for g in groups)
        case (tree.WindowPattern(), *_):
            found = []
            for element in elements:
                inside = (
                    element.group.elements
                    if isinstance(element, tree.OptionalPattern)
                    else (element,)
                )
                is_optional = isinstance(element, tree.OptionalPattern)
                found.append(_block(query, inside, match, is_optional=is_optional))
            if not any(block.is_optional for block in found):
                raise NotIncompleteError("no attribute may be missing: there is no OPTIONAL")
            return tuple(found)
        case _:
            raise NotIncompleteError(
                "attributes come from a UNION of WINDOW blocks alone, or from one WINDOW and others"
                " in OPTIONAL"
            )


def _block(
    query: tree.QueryUnit, elements: Sequence[tree.Node], match: MatchRule, *, is_optional: bool
) -> AttributeBlock:
    match elements:
        case (tree.WindowPattern(tree.Iri(name), group) as clause,):
            pass
        case _:
            raise NotIncompleteError("a block of an attribute is more than one WINDOW")
    numbers = [n for n, window in enumerate(query.windows) if window.window.value == name]
    if not numbers:
        raise NotIncompleteError(f"there is no window <{name}>")
    triples = plain_terms([e for e in group.elements if not isinstance(e, tree.FilterClause)])
    if not triples:
        raise NotIncompleteError("a window has more than plain triple patterns and filters")
    if len(triples) > 1:
        _check_match(query.windows[numbers[0]], match)
    filters = tree.find(group, tree.FilterClause)
    side = StreamSide(tree.Iri(name), triples, any(True for _ in filters))
    return AttributeBlock(clause, numbers[0], side, is_optional)


def _check_match(window: tree.FromWindow, match: MatchRule) -> None:
    frame = window.frame
    if isinstance(frame, tree.CountWindow) and frame.unit == "TRIPLES":
        raise NotIncompleteError("the window may cut through the triples of an attribute")
    if match == "window":
        raise NotIncompleteError(
            "the triples of an attribute may come in several elements (--match element says that"
            " they do not)"
        )
