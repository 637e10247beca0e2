"""The query text for Oxigraph, without the syntax that its parser rejects.

The parser rejects names with characters beyond the Basic Multilingual Plane, which SPARQL allows in
variables, blank nodes and prefixes, and the empty negated property set `!()`, which any property
matches. Patterns that the planner repeats get new blank node labels, as a label belongs to one
basic graph pattern (SPARQL 1.1, section 5.1.1).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from typing import cast

from rsp_engine.grammar import tree
from rsp_engine.grammar.write import serialise

__all__ = ["store_text"]

_NO_PROPERTY = tree.Iri("urn:rsp-engine:no-property")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")


def store_text(query: tree.QueryUnit) -> str:
    r"""Return the text of a query in plain SPARQL, with its columns in the same order.

    >>> from rsp_engine.grammar import parse
    >>> print(store_text(parse("ASK { ?s !() ?\U0001d4b3 }")), end="")
    ASK
    WHERE {
      ?s !(<urn:rsp-engine:no-property>) ?u1d4b3 .
    }
    """
    plain = cast("tree.QueryUnit", tree.rewrite_tree(query, _Readable(query).change))
    return serialise(replace(plain, prologue=tuple(filter(_is_readable, plain.prologue))))


def _is_readable(declaration: tree.BaseDecl | tree.PrefixDecl) -> bool:
    return isinstance(declaration, tree.BaseDecl) or not _BEYOND.search(declaration.prefix)


class _Readable:
    """Rewrites what Oxigraph's parser rejects, inner nodes first."""

    def __init__(self, query: tree.QueryUnit) -> None:
        taken = {variable.name for variable in tree.find(query, tree.Var)}
        self._names = {name: _plain_name(name, taken) for name in sorted(filter(_is_beyond, taken))}
        labels = {node.label for node in tree.find(query, tree.BlankNode)}
        fresh = (f"rsp{n}" for n in count())
        self._fresh = (label for label in fresh if label not in labels)
        self._used: set[str] = set()

    def change(self, node: tree.Node) -> tree.Node:
        match node:
            case tree.Var(name) if name in self._names:
                return tree.Var(self._names[name])
            case tree.PathNegated(()):
                return tree.PathNegated((_NO_PROPERTY,))
            case tree.GroupPattern(elements):
                return self._group(elements)
            case _:
                return node

    def _group(self, elements: tuple[tree.Pattern | tree.SubSelect, ...]) -> tree.GroupPattern:
        changed: list[tree.Pattern | tree.SubSelect] = []
        labels: dict[str, str] = {}
        for element in elements:
            if isinstance(element, tree.TriplesBlock):
                changed.append(self._relabelled(element, labels))
                continue
            if not isinstance(element, tree.FilterClause):  # it ends the basic graph pattern
                labels = {}
            changed.append(element)
        return tree.GroupPattern(tuple(changed))

    def _relabelled(self, block: tree.TriplesBlock, labels: dict[str, str]) -> tree.TriplesBlock:
        """Give blank nodes new labels where another basic graph pattern uses theirs."""

        def change(node: tree.Node) -> tree.Node:
            if not isinstance(node, tree.BlankNode):
                return node
            label = node.label
            if label not in labels:
                is_new = label not in self._used and not _is_beyond(label)
                labels[label] = label if is_new else next(self._fresh)
                self._used.add(label)
            return tree.BlankNode(labels[label])

        return cast("tree.TriplesBlock", tree.rewrite_tree(block, change))


def _is_beyond(name: str) -> bool:
    return _BEYOND.search(name) is not None


def _plain_name(name: str, taken: set[str]) -> str:
    """Return a name that is not in the query, and add it to those taken."""
    plain = _BEYOND.sub(lambda found: f"u{ord(found[0]):x}", name)
    while plain in taken:
        plain += "_"
    taken.add(plain)
    return plain
