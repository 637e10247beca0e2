"""The translation of a syntax tree to a logical plan (SPARQL 1.1, section 18.2)."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, assert_never

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import is_grouped, projected_variables
from rsp_engine.grammar.triples import plain_triples
from rsp_engine.plan.logical import algebra as logical

if TYPE_CHECKING:
    from rsp_engine.plan.logical.algebra import Logical

__all__ = ["translate", "translate_group"]


def translate(query: tree.QueryUnit) -> Logical:
    """Return the logical plan of a query; raise `ValueError` for DESCRIBE, which has none."""
    return _Translation().query(query)


def translate_group(group: tree.GroupPattern) -> Logical:
    """Return the logical plan of a group."""
    return _Translation().group(group)


class _Translation:
    """The translation of one query, in which each anonymous blank node has its own label."""

    def __init__(self) -> None:
        self._labels = count()

    def query(self, query: tree.QueryUnit) -> Logical:
        form = query.form
        match form:
            case tree.SelectForm(clause, _, where, modifiers):
                answer = self._select(clause, where, modifiers, query.values)
            case tree.ConstructForm(template, _, where, modifiers):
                triples = () if template is None else tuple(plain_triples(template, self._labels))
                answer = logical.Construct(
                    triples, self._solutions(where, modifiers, query.values), source=form
                )
            case tree.AskForm(_, where, modifiers):
                answer = logical.Ask(self._solutions(where, modifiers, query.values), source=form)
            case tree.DescribeForm():
                raise ValueError(
                    "DESCRIBE has no logical plan: the rules of the language refuse it"
                )
            case _ as unreachable:
                assert_never(unreachable)
        return logical.Stream(query.register, answer, source=form)

    def _select(
        self,
        clause: tree.SelectClause,
        where: tree.GroupPattern,
        modifiers: tree.Modifiers,
        values: tree.InlineData | None,
    ) -> Logical:
        plan = self._grouped(where, modifiers, values, is_grouped(clause, modifiers))
        computed = tuple(item for item in clause.items if isinstance(item, tree.SelectAs))
        for item in computed:
            plan = logical.Extend(plan, item.variable, item.expression, source=item)
        plan = self._ordered(plan, modifiers)
        names = projected_variables(clause, where, modifiers, values)
        plan = logical.Project(names, plan, computed, source=clause)
        if clause.modifier == "DISTINCT":
            plan = logical.Distinct(plan, source=clause)
        elif clause.modifier == "REDUCED":
            plan = logical.Reduced(plan, source=clause)
        return self._sliced(plan, modifiers)

    def _solutions(
        self, where: tree.GroupPattern, modifiers: tree.Modifiers, values: tree.InlineData | None
    ) -> Logical:
        grouped = is_grouped(tree.SelectClause(()), modifiers)
        plan = self._grouped(where, modifiers, values, grouped)
        return self._sliced(self._ordered(plan, modifiers), modifiers)

    def _grouped(
        self,
        where: tree.GroupPattern,
        modifiers: tree.Modifiers,
        values: tree.InlineData | None,
        grouped: bool,
    ) -> Logical:
        plan = self.group(where)
        if grouped:
            first = next(iter(modifiers.group_by), modifiers)
            plan = logical.Group(modifiers.group_by, plan, source=first)
        if modifiers.having:
            plan = logical.Filter(
                modifiers.having, plan, is_having=True, source=modifiers.having[0]
            )
        if values is None:
            return plan
        last = logical.Values(values, trailing=True, source=values)
        return logical.Join(plan, last, source=values)

    def _ordered(self, plan: Logical, modifiers: tree.Modifiers) -> Logical:
        order = modifiers.order_by
        return logical.OrderBy(order, plan, source=order[0]) if order else plan

    def _sliced(self, plan: Logical, modifiers: tree.Modifiers) -> Logical:
        offset = 0 if modifiers.offset is None else modifiers.offset.value
        limit = None if modifiers.limit is None else modifiers.limit.value
        if not offset and limit is None:
            return plan
        source = modifiers.limit or modifiers.offset or modifiers
        return logical.Slice(plan, offset, limit, source=source)

    def group(self, group: tree.GroupPattern) -> Logical:
        """Join the elements of a group in order, and apply its filters to the whole group.

        A filter does not end a basic graph pattern: the triples before and after it are one.
        """
        plan: Logical = logical.Bgp(source=group)
        filters: list[tree.FilterClause] = []
        blocks: list[tree.TriplesBlock] = []
        for element in group.elements:
            if blocks and not isinstance(element, tree.FilterClause | tree.TriplesBlock):
                plan, blocks = self._with_triples(plan, blocks), []
            match element:
                case tree.FilterClause():
                    filters.append(element)
                case tree.TriplesBlock():
                    blocks.append(element)
                case tree.OptionalPattern(inner):
                    right = self.group(inner)
                    conditions: tuple[tree.Expression, ...] = ()
                    if isinstance(right, logical.Filter):
                        conditions, right = right.conditions, right.input
                    plan = logical.LeftJoin(plan, right, conditions, source=element)
                case tree.MinusPattern(inner):
                    plan = logical.Minus(plan, self.group(inner), source=element)
                case tree.Bind(expression, variable):
                    plan = logical.Extend(plan, variable, expression, source=element)
                case _:
                    plan = logical.Join(plan, self._element(element), source=element)
        if blocks:
            plan = self._with_triples(plan, blocks)
        if not filters:
            return plan
        return logical.Filter(tuple(f.condition for f in filters), plan, source=filters[0])

    def _with_triples(self, plan: Logical, blocks: list[tree.TriplesBlock]) -> Logical:
        triples = tuple(t for block in blocks for t in plain_triples(block, self._labels))
        return logical.Join(plan, logical.Bgp(triples, source=blocks[0]), source=blocks[0])

    def _element(
        self,
        element: tree.GroupPattern | tree.UnionPattern | tree.GraphPattern | tree.WindowPattern
        | tree.ServicePattern | tree.InlineData | tree.SubSelect,
    ) -> Logical:  # fmt: skip
        match element:
            case tree.GroupPattern():
                return self.group(element)
            case tree.UnionPattern(groups):
                first, *others = map(self.group, groups)
                for other in others:
                    first = logical.Union(first, other, source=element)
                return first
            case tree.GraphPattern(name, inner):
                return logical.Graph(name, self.group(inner), source=element)
            case tree.WindowPattern(name, inner):
                return logical.Window(name, self.group(inner), source=element)
            case tree.ServicePattern(name, inner, silent):
                return logical.Service(name, self.group(inner), silent, source=element)
            case tree.InlineData():
                return logical.Values(element, source=element)
            case tree.SubSelect(clause, where, modifiers, values):
                return self._select(clause, where, modifiers, values)
            case _ as unreachable:
                assert_never(unreachable)
