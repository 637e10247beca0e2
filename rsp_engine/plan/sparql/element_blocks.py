"""Matching by element: the rewrite of a query for `--match element`.

The pattern of a WINDOW block is evaluated over each element of the window separately. The window
then holds the solutions of its elements instead of their triples (see `solution_nodes`), and the
block reads these solutions:

    WINDOW :w { ?s :free ?f ; :rain ?r }
    WINDOW :w { [ <...:block:0:s> ?s ; <...:block:0:f> ?f ; <...:block:0:r> ?r ] }

The rest of the query does not change. A block that reads one triple has the same solutions over the
whole window; it stays as it is, unless another block over the same window reads several triples.

The two objects of a pair may arrive in two elements, so each object is a block of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rsp_engine.errors import Diagnostic
from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import projected_variables
from rsp_engine.grammar.triples import plain_terms, plain_triples
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.sparql.element_query import ElementText
from rsp_engine.operators.windows.element_solutions import ElementBlock
from rsp_engine.plan.shapes.pair_pattern import objects_of
from rsp_engine.plan.shapes.ranking import counts_triples
from rsp_engine.plan.sparql.general import ENGINE_FUNCTIONS, VOLATILE_FUNCTIONS
from rsp_engine.plan.sparql.object_texts import batch_config, select_config
from rsp_engine.plan.sparql.service_context import correlated_variables
from rsp_engine.plan.sparql.solution_nodes import open_node, read_nodes
from rsp_engine.plan.variables import (
    certain_variables,
    free_name,
    named_variables,
    scope_variables,
    visible_variables,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.grammar.triples import PlainTerms
    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.options import QueryOptions

__all__ = ["ByElement", "ElementBlocks", "by_element", "refused_blocks"]

ElementBlocks = Mapping[str, tuple[ElementBlock, ...]]
"""The blocks over each window that is matched element by element, by the IRI of the window."""

_TRUE = tree.Literal("true", XSD + "boolean")


class ByElement(NamedTuple):
    """A query over the solutions of elements, and the blocks that produce these.

    `nodes` are the variables that hold the nodes of solutions, in the order of the blocks.
    """

    query: tree.QueryUnit
    blocks: ElementBlocks
    nodes: tuple[str, ...] = ()


def by_element(
    query: LogicalQuery,
    options: QueryOptions,
    *,
    opens_nodes: bool = False,
    is_timed: bool = False,
) -> ByElement:
    """Return a query whose blocks are matched by element; the query itself if none is.

    With `opens_nodes`, a variable of the query holds the node of a solution. With `is_timed`, the
    nodes carry the arrival times of the solutions.
    """
    windows = _windows_of(query, options)
    if not windows:
        return ByElement(query.unit, {})
    plain = _with_constant_windows(_with_two_blocks(query))
    if opens_nodes:
        plain = _with_columns(plain)
    rewriting = _Rewriting(plain, windows, options, opens_nodes, is_timed)
    changed: Any = tree.rewrite_outermost(plain, _of_windows(rewriting.window))
    return ByElement(changed, rewriting.by_window(), tuple(rewriting.nodes))


def refused_blocks(query: LogicalQuery, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why a block cannot be evaluated element by element."""
    windows, unit = _windows_of(query, options), query.unit
    cut = {w.window.value for w in query.windows if counts_triples(w)}
    in_exists = {
        id(w) for e in tree.find(unit, tree.Exists) for w in tree.find(e, tree.WindowPattern)
    }
    if windows and (pair := _pair(query)) is not None and pair.looks_beyond:
        message = "EXISTS in a filter on both objects of a pair does not name the element it reads"
        hint = "put a WINDOW inside the EXISTS, and the filter outside the block"
        yield Diagnostic("semantic", message, pair.window.span, hint)
    for window in tree.find(unit, tree.WindowPattern):
        names = _ranged_over(window, unit) & windows
        if not names:
            continue
        if names & cut:
            message = "a window of TRIPLES may cut through an element, which must be matched whole"
            hint = "count ELEMENTS, or remove --match element"
            yield Diagnostic("semantic", message, window.span, hint)
        yield from _refused_inside(window)
        kept, _ = _without_lifted(window.group)
        for name in correlated_variables(kept, unit) if id(window) in in_exists else ():
            message = f"EXISTS would pass ?{name} into this block, which is evaluated per element"
            hint = f"move the condition on ?{name} out of the WINDOW, into the EXISTS"
            yield Diagnostic("semantic", message, window.span, hint)


def _refused_inside(window: tree.WindowPattern) -> Iterator[Diagnostic]:
    kept, _ = _without_lifted(window.group)
    for node in tree.walk(kept):
        match node:
            case tree.WindowPattern() | tree.ServicePattern():
                what = node.keyword
            case tree.BuiltInCall(name) if name in VOLATILE_FUNCTIONS:
                what = f"{name}()"
            case _:
                continue
        message = f"{what} is not allowed in a WINDOW that is matched element by element"
        hint = "move it out of the WINDOW, or remove --match element"
        yield Diagnostic("semantic", message, node.span, hint)


def _of_windows(
    change: Callable[[tree.WindowPattern], tree.Node],
) -> Callable[[tree.Node], tree.Node | None]:
    """Return a rewrite that applies to WINDOW blocks only."""
    return lambda node: change(node) if isinstance(node, tree.WindowPattern) else None


def _windows_of(query: LogicalQuery, options: QueryOptions) -> set[str]:
    """Return the IRIs of the windows that have to be matched element by element."""
    if options.ranking.match == "window":
        return set()
    blocks = tree.find(_with_two_blocks(query), tree.WindowPattern)
    several = (block for block in blocks if not _reads_one_triple(block.group))
    return set[str]().union(*(_ranged_over(block, query.unit) for block in several))


def _ranged_over(window: tree.WindowPattern, query: tree.QueryUnit) -> set[str]:
    if isinstance(window.name, tree.Iri):
        return {window.name.value}
    return {clause.window.value for clause in query.windows}


def _reads_one_triple(group: tree.GroupPattern) -> bool:
    """Return whether each solution of a group depends on one triple of the window only."""
    match [element for element in group.elements if _reads(element)]:
        case [tree.TriplesBlock() as block]:
            triples = plain_triples(block)
            return len(triples) == 1 and isinstance(triples[0][1], tree.Var | tree.Iri)
        case [tree.GroupPattern() as inner]:
            return _reads_one_triple(inner)
        case _:
            return False


def _reads(node: tree.Node) -> bool:
    """Return whether a part of a block reads the window of the block."""
    if isinstance(node, tree.TriplesBlock):
        return True
    if isinstance(node, tree.GraphPattern | tree.WindowPattern | tree.ServicePattern):
        return False
    return any(map(_reads, tree.children(node)))


def _without_lifted(
    group: tree.GroupPattern,
) -> tuple[tree.GroupPattern, tuple[tree.FilterClause, ...]]:
    """Return a group without the filters that only the whole query can evaluate, and those.

    Such a filter depends on the instant of the evaluation, or on a variable from outside of the
    block that EXISTS substitutes.
    """
    seen = visible_variables(group)
    lifted = tuple(
        element
        for element in group.elements
        if isinstance(element, tree.FilterClause)
        and not any(True for _ in tree.find(element, tree.Exists))
        and (named_variables(element) - seen or _calls(element) & ENGINE_FUNCTIONS)
    )
    return tree.GroupPattern(tuple(e for e in group.elements if e not in lifted)), lifted


def _calls(node: tree.Node) -> set[str]:
    return {call.name for call in tree.find(node, tree.BuiltInCall)}


def _with_constant_windows(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query with a block for each window in place of `WINDOW ?w`."""

    def expand(node: tree.Node) -> tree.Node:
        if not isinstance(node, tree.WindowPattern) or isinstance(node.name, tree.Iri):
            return node
        groups = tuple(
            tree.GroupPattern(
                (tree.InlineData((node.name,), ((name,),)), tree.WindowPattern(name, node.group))
            )
            for name in (clause.window for clause in query.windows)
        )
        return groups[0] if len(groups) == 1 else tree.UnionPattern(groups)

    changed: Any = tree.rewrite_tree(query, expand)
    return changed  # type: ignore[no-any-return]


def _with_columns(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query that names its columns in place of `SELECT *`."""
    form = query.form
    if not isinstance(form, tree.SelectForm) or form.clause.items:
        return query
    names = projected_variables(form.clause, form.where, form.modifiers, query.values)
    clause = replace(form.clause, items=tuple(map(tree.Var, names)))
    return replace(query, form=replace(form, clause=clause))


@dataclass(slots=True)
class _Rewriting:
    """Replaces blocks over triples by blocks over solutions; equal blocks are shared."""

    query: tree.QueryUnit
    windows: set[str]
    options: QueryOptions
    opens_nodes: bool
    is_timed: bool
    nodes: list[str] = field(default_factory=list)
    blocks: dict[tree.WindowPattern, ElementBlock] = field(default_factory=dict)

    def by_window(self) -> ElementBlocks:
        grouped: dict[str, tuple[ElementBlock, ...]] = {}
        for block in self.blocks.values():
            grouped[block.store_query.window] = (*grouped.get(block.store_query.window, ()), block)
        return grouped

    def window(self, window: tree.WindowPattern) -> tree.Node:
        assert isinstance(window.name, tree.Iri), "WINDOW ?w is expanded before"  # noqa: S101
        if window.name.value not in self.windows:
            inner: Any = tree.rewrite_outermost(window.group, _of_windows(self.window))
            return replace(window, group=inner)
        name = window.name
        group, lifted = _without_lifted(window.group)
        block = self.blocks.setdefault(tree.WindowPattern(name, group), self._block(name, group))

        def within(inside: tree.GroupPattern) -> tree.WindowPattern:
            return tree.WindowPattern(name, inside, span=window.span)

        taken = named_variables(self.query)
        pattern: tree.Pattern
        if self.opens_nodes and certain_variables(group) >= set(block.names):
            node = free_name(f"solution{block.number}_", taken)
            self.nodes.append(node)
            pattern = open_node(group, block.iri, within, node)
        else:
            pattern = read_nodes(group, block.iri, within, taken)
        return tree.GroupPattern((pattern, *lifted)) if lifted else pattern

    def _block(self, window: tree.Iri, group: tree.GroupPattern) -> ElementBlock:
        names, query = scope_variables(group), replace(self.query, values=None)
        mark = tree.SelectAs(_TRUE, tree.Var(free_name("mark", named_variables(query))))
        items = tuple(map(tree.Var, names)) or (mark,)
        where = tree.GroupPattern((tree.WindowPattern(window, group),))
        functions = self.options.functions
        return ElementBlock(
            len(self.blocks),
            names,
            ElementText(
                window.value,
                select_config(query, items, where, functions),
                batch_config(query, items, where, functions) if _is_flat(group) else None,
            ),
            is_marked=not certain_variables(group) & set(names),
            reads_graphs=any(True for _ in tree.find(group, tree.GraphPattern)),
            is_timed=self.is_timed,
        )


def _is_flat(group: tree.GroupPattern) -> bool:
    """Return whether a group has triples first, and then only FILTER, BIND and flat OPTIONAL."""
    first = next((e for e in group.elements if not isinstance(e, tree.FilterClause)), None)
    return isinstance(first, tree.TriplesBlock) and all(map(_is_plain, group.elements))


def _is_plain(element: tree.Node) -> bool:
    match element:
        case tree.TriplesBlock():
            return all(
                isinstance(verb, tree.Var | tree.Iri) for _, verb, _ in plain_triples(element)
            )
        case tree.FilterClause() | tree.Bind():
            return True
        case tree.OptionalPattern(group):
            return _is_flat(group)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Pair:
    """The only block of a ranked query whose solutions are pairs of objects."""

    window: tree.WindowPattern
    objects: tuple[tree.WindowPattern, tree.WindowPattern]
    on_both: tuple[tree.FilterClause, ...]

    @property
    def looks_beyond(self) -> bool:
        """Whether a filter on both objects has an EXISTS."""
        return any(True for each in self.on_both for _ in tree.find(each, tree.Exists))


def _pair(query: LogicalQuery) -> _Pair | None:
    """Return the pair that a query ranks; None if it does not rank pairs."""
    form = query.unit.form
    windows = list(tree.find(query.unit, tree.WindowPattern))
    if not query.is_ranking or len(windows) != 1:
        return None
    [window] = windows
    if form.where is None or window not in form.where.elements:
        return None
    elements = window.group.elements
    filters = tuple(e for e in elements if isinstance(e, tree.FilterClause))
    triples = plain_terms([e for e in elements if not isinstance(e, tree.FilterClause)])
    if (objects := objects_of(triples)) is None:
        return None
    first, second = (
        set[str]().union(*(named_variables(t) for p in part for t in p)) for part in objects
    )
    sides: tuple[list[tree.FilterClause], ...] = ([], [], [])
    for each in filters:
        names = named_variables(each) & (first | second)
        sides[0 if names <= first else 1 if names <= second else 2].append(each)
    one, other = (
        tree.WindowPattern(
            window.name, tree.GroupPattern((_as_block(part), *side)), span=window.span
        )
        for part, side in zip(objects, sides, strict=False)
    )
    return _Pair(window, (one, other), tuple(sides[2]))


def _as_block(triples: tuple[PlainTerms, ...]) -> tree.TriplesBlock:
    subjects: Any = [tree.SubjectTriples(s, (tree.Property(p, (o,)),)) for s, p, o in triples]  # type: ignore[arg-type]
    return tree.TriplesBlock(tuple(subjects))


def _with_two_blocks(query: LogicalQuery) -> tree.QueryUnit:
    """Return a query that has, if it ranks pairs, a block for each of the two objects."""
    if (pair := _pair(query)) is None:
        return query.unit

    def split(_: tree.WindowPattern) -> tree.Node:
        return tree.GroupPattern((*pair.objects, *pair.on_both))

    changed: Any = tree.rewrite_outermost(query.unit, _of_windows(split))
    return changed  # type: ignore[no-any-return]
