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

    from rsp_engine.plan.options import Match

__all__ = ["Block", "NotCollectedError", "blocks_of", "is_of_streams"]


class NotCollectedError(Exception):
    """Why a query does not collect the attributes of objects from several streams."""


@dataclass(frozen=True, slots=True)
class Block:
    """A WINDOW, the number of its window, and what is matched in it; it may be missing."""

    clause: tree.Window
    scan: int
    side: StreamSide
    is_optional: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The variables of the block."""
        return self.side.names


def is_of_streams(query: tree.Query) -> bool:
    """Tell whether a query has WINDOW clauses in UNION or OPTIONAL."""
    select = query.form
    if not isinstance(select, tree.Select):
        return False
    kinds = (e for e in select.where.elements if isinstance(e, tree.Union | tree.Optional))
    return any(True for element in kinds for _ in tree.find(element, tree.Window))


def blocks_of(query: tree.Query, select: tree.Select, match: Match) -> tuple[Block, ...]:
    """Return the blocks of a query, or raise why it has none: all of a UNION, or some OPTIONAL."""
    elements = select.where.elements
    if any(True for _ in tree.find(select.where, tree.Exists)):
        raise NotCollectedError("EXISTS in a filter looks beyond the object")
    if query.values is not None:
        raise NotCollectedError("VALUES after the query joins what is not in the stream")
    match elements:
        case (tree.Union(groups),):
            return tuple(_block(query, g.elements, match, is_optional=False) for g in groups)
        case (tree.Window(), *_):
            found = []
            for element in elements:
                inside = (
                    element.group.elements if isinstance(element, tree.Optional) else (element,)
                )
                is_optional = isinstance(element, tree.Optional)
                found.append(_block(query, inside, match, is_optional=is_optional))
            if not any(block.is_optional for block in found):
                raise NotCollectedError("no attribute may be missing: there is no OPTIONAL")
            return tuple(found)
        case _:
            raise NotCollectedError(
                "attributes come from a UNION of WINDOW blocks alone, or from one WINDOW and others"
                " in OPTIONAL"
            )


def _block(
    query: tree.Query, elements: Sequence[tree.Node], match: Match, *, is_optional: bool
) -> Block:
    match elements:
        case (tree.Window(tree.Iri(name), group) as clause,):
            pass
        case _:
            raise NotCollectedError("a block of an attribute is more than one WINDOW")
    numbers = [n for n, window in enumerate(query.windows) if window.window.value == name]
    if not numbers:
        raise NotCollectedError(f"there is no window <{name}>")
    triples = plain_terms([e for e in group.elements if not isinstance(e, tree.Filter)])
    if not triples:
        raise NotCollectedError("a window has more than plain triple patterns and filters")
    if len(triples) > 1:
        _check_match(query.windows[numbers[0]], match)
    filters = tree.find(group, tree.Filter)
    side = StreamSide(tree.Iri(name), triples, any(True for _ in filters))
    return Block(clause, numbers[0], side, is_optional)


def _check_match(window: tree.FromWindow, match: Match) -> None:
    frame = window.frame
    if isinstance(frame, tree.CountWindow) and frame.unit == "TRIPLES":
        raise NotCollectedError("the window may cut through the triples of an attribute")
    if match == "window":
        raise NotCollectedError(
            "the triples of an attribute may come in several elements (--match element says that"
            " they do not)"
        )
