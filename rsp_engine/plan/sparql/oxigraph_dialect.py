"""The dialect of Oxigraph: what it rejects or evaluates in another way, rewritten.

    standard_paths        property paths, as SPARQL 1.1 defines them
    with_separate_groups  expressions over groups that use the names of others
    totally_ordered       ORDER BY, in the order of the engine
    exactly_aggregated    aggregates whose result does not depend on the order of the values
    store_text            the text, in syntax that Oxigraph reads

Requests to a SERVICE are not affected: no text for Oxigraph has a SERVICE clause.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, cast

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import (
    aggregates,
    group_keys,
    is_aggregate,
    is_grouped,
    projected_variables,
)
from rsp_engine.grammar.triples import plain_triples
from rsp_engine.grammar.write import serialise
from rsp_engine.operators.sparql.sparql_query import BUILTIN_NAMESPACE, FULL_KEY, ORDER_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.grammar.triples import PlainTriple, TripleNode

__all__ = [
    "by_terms",
    "exactly_aggregated",
    "standard_paths",
    "store_text",
    "totally_ordered",
    "with_separate_groups",
]

_TOTAL = {"STR", "LANG", "STRLEN", "YEAR", "BOUND"}  # their results have a total order already
_SUMS = {"SUM", "AVG"}
_EXTREMES = {"MIN", "MAX"}
_NO_PROPERTY = tree.Iri("urn:rsp-engine:no-property")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")


def standard_paths(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query whose paths Oxigraph evaluates as SPARQL defines them (9, 18.2.2).

    Alternatives are a union, so two paths to the same node are two solutions; Oxigraph gives one. A
    zero-length path leads from a term to itself, even if the term is not in the graph; Oxigraph
    finds nothing then. These paths are rewritten:

        ?s :p|:q ?o        { ?s :p ?o } UNION { ?s :q ?o }
        ?s :r/(:p|:q) ?o   ?s :r ?v . { ?v :p ?o } UNION { ?v :q ?o }
        :c :p* ?o          { :c :p* ?o } UNION { VALUES ?o { :c } FILTER NOT EXISTS { :c :p* :c } }
        :c :p* :c          the pattern is dropped: it always holds

    Paths inside `*`, `+` and `?` have set semantics and stay as they are. Blank nodes of the
    rewritten patterns become variables, since a label must not occur in two groups; `SELECT *` of a
    sub-query is expanded before, so that it does not show them.

    >>> from rsp_engine.grammar import parse, serialise
    >>> print(serialise(standard_paths(parse("ASK { ?s <urn:p>|<urn:q> ?o }"))))
    ASK
    WHERE {
      {
        ?s <urn:p> ?o .
      } UNION {
        ?s <urn:q> ?o .
      }
    }
    <BLANKLINE>
    """
    blocks = tree.find(query, tree.TriplesBlock)
    if not any(_is_rewritten(*triple) for block in blocks for triple in plain_triples(block)):
        return query
    standard = _Standard(query)
    changed = tree.rewrite_tree(tree.rewrite_tree(query, standard.expand_star), standard.change)
    assert isinstance(changed, tree.QueryUnit), "rewriting keeps the kind of the root"  # noqa: S101
    return changed


def _is_rewritten(subject: TripleNode, path: tree.Var | tree.Path, value: TripleNode) -> bool:
    match path:
        case tree.PathAlternative():
            return True
        case tree.PathInverse(inner):
            return _is_rewritten(value, inner, subject)
        case tree.PathSequence(steps):
            between = tree.Var("")
            ends = [subject, *(between for _ in steps[1:]), value]
            return any(map(_is_rewritten, ends, steps, ends[1:]))
        case tree.PathRepeat() if _may_be_empty(path):
            is_same = subject == value and _is_constant(subject)
            return is_same or _is_constant(subject) != _is_constant(value)
        case _:
            return False


def _may_be_empty(path: tree.Path) -> bool:
    """Return whether a path may have zero length."""
    match path:
        case tree.PathRepeat(inner, modifier):
            return modifier != "+" or _may_be_empty(inner)
        case tree.PathInverse(inner):
            return _may_be_empty(inner)
        case tree.PathSequence(steps):
            return all(map(_may_be_empty, steps))
        case tree.PathAlternative(options):
            return any(map(_may_be_empty, options))
        case _:
            return False


def _is_constant(node: TripleNode) -> bool:
    return isinstance(node, tree.Iri | tree.Literal)


class _Standard:
    """Rewrites the groups of one query."""

    def __init__(self, query: tree.QueryUnit) -> None:
        taken = {variable.name for variable in tree.find(query, tree.Var)}
        names = (f"rsp_path{number}" for number in count())
        self._fresh = (tree.Var(name) for name in names if name not in taken)

    def expand_star(self, node: tree.Node) -> tree.Node:
        """Name the variables of `SELECT *` in a sub-query; without any, select a constant."""
        if not isinstance(node, tree.SubSelect) or node.clause.items:
            return node
        names = projected_variables(node.clause, node.where, node.modifiers, node.values)
        items = tuple(map(tree.Var, names)) or (tree.SelectAs(tree.ONE, next(self._fresh)),)
        return replace(node, clause=replace(node.clause, items=items))

    def change(self, node: tree.Node) -> tree.Node:
        """Rewrite the paths of a group."""
        if not isinstance(node, tree.GroupPattern):
            return node
        labels = count()
        blocks = {
            place: plain_triples(element, labels)
            for place, element in enumerate(node.elements)
            if isinstance(element, tree.TriplesBlock)
        }
        if not any(_is_rewritten(*t) for triples in blocks.values() for t in triples):
            return node
        named: dict[tree.BlankNode, tree.Var] = {}
        elements: list[tree.Pattern | tree.SubSelect] = []
        for place, element in enumerate(node.elements):
            if place in blocks:
                elements += self._patterns([self._named(t, named) for t in blocks[place]])
            else:
                elements.append(element)
        return replace(node, elements=tuple(elements))

    def _named(self, triple: PlainTriple, named: dict[tree.BlankNode, tree.Var]) -> PlainTriple:
        """Return a triple with variables in place of blank nodes."""
        subject, verb, value = triple
        return self._variable(subject, named), verb, self._variable(value, named)

    def _variable(self, node: TripleNode, named: dict[tree.BlankNode, tree.Var]) -> TripleNode:
        if not isinstance(node, tree.BlankNode):
            return node
        if node not in named:
            named[node] = next(self._fresh)
        return named[node]

    def _patterns(self, triples: Sequence[PlainTriple]) -> Iterator[tree.Pattern]:
        """Yield a block of the triples that stay, and the patterns of the rewritten ones."""
        if kept := [triple for triple in triples if not _is_rewritten(*triple)]:
            yield _block(*kept)
        for triple in triples:
            if _is_rewritten(*triple):
                yield from self._rewritten(*triple)

    def _rewritten(
        self, subject: TripleNode, path: tree.Var | tree.Path, value: TripleNode
    ) -> Iterator[tree.Pattern]:
        match path:
            case tree.PathAlternative(options):
                groups = (self._patterns([(subject, option, value)]) for option in options)
                yield tree.UnionPattern(
                    tuple(tree.GroupPattern(tuple(patterns)) for patterns in groups)
                )
            case tree.PathInverse(inner):
                yield from self._patterns([(value, inner, subject)])
            case tree.PathSequence(steps):
                ends = [subject, *(next(self._fresh) for _ in steps[1:]), value]
                yield from self._patterns(list(zip(ends, steps, ends[1:], strict=False)))
            case _ if subject != value:
                yield _with_zero_length(subject, path, value)


def _with_zero_length(
    subject: TripleNode, path: tree.Var | tree.Path, value: TripleNode
) -> tree.UnionPattern:
    """Return the matches of a path, and its constant end if that is not a node of the graph."""
    constant, variable = (subject, value) if _is_constant(subject) else (value, subject)
    assert isinstance(constant, tree.Iri | tree.Literal), "one end is constant"  # noqa: S101
    assert isinstance(variable, tree.Var), "the other end is a variable"  # noqa: S101
    is_absent = tree.Exists(tree.GroupPattern((_block((constant, path, constant)),)), negated=True)
    itself = tree.InlineData((variable,), ((constant,),))
    matches = tree.GroupPattern((_block((subject, path, value)),))
    return tree.UnionPattern((matches, tree.GroupPattern((itself, tree.FilterClause(is_absent)))))


def _block(*triples: PlainTriple) -> tree.TriplesBlock:
    return tree.TriplesBlock(
        tuple(tree.SubjectTriples(s, (tree.Property(verb, (o,)),)) for s, verb, o in triples)
    )


def with_separate_groups(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query in which no expression over groups uses the name of another expression.

    A later expression of SELECT, HAVING and ORDER BY may use the name of an earlier one. Oxigraph
    rejects this where solutions are grouped, and its HAVING does not see the names. So a sub-query
    computes the groups and their aggregates, and the outer query computes the rest: SELECT extends,
    then HAVING filters (SPARQL 1.1, section 18.2.4).

        SELECT ?s (COUNT(?v) AS ?m) (?m * 2 AS ?k) WHERE { P } GROUP BY ?s HAVING (?m > 1)

        SELECT ?s ?m ?k WHERE {
          { SELECT ?s (COUNT(?v) AS ?rsp_aggregate) WHERE { P } GROUP BY ?s }
          BIND (?rsp_aggregate AS ?m) BIND (?m * 2 AS ?k) FILTER (?m > 1)
        }
    """
    taken = {variable.name for variable in tree.find(query, tree.Var)}
    names = (f"rsp_aggregate{n or ''}" for n in count())
    fresh = (name for name in names if name not in taken)

    def change(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.SubSelect):
            return _separated(node, fresh)
        if isinstance(node, tree.QueryUnit) and isinstance(form := node.form, tree.SelectForm):
            whole = tree.SubSelect(form.clause, form.where, form.modifiers, node.values)
            split = _separated(whole, fresh)
            select = tree.SelectForm(split.clause, form.dataset, split.where, split.modifiers)
            return replace(node, form=replace(select, span=form.span), values=split.values)
        return node

    return cast("tree.QueryUnit", tree.rewrite_tree(query, change))


def _separated(select: tree.SubSelect, fresh: Iterator[str]) -> tree.SubSelect:
    """Return a SELECT whose groups are in a sub-query; the SELECT itself if Oxigraph accepts it."""
    modifiers = select.modifiers
    grouped = is_grouped(select.clause, modifiers)
    named = [item for item in select.clause.items if isinstance(item, tree.SelectAs)]
    moves_having = bool(_free_variables(modifiers.having) & _names(named))
    if not moves_having and not (grouped and _uses_names(named, modifiers)):
        return select
    conditions = modifiers.having if moves_having else ()
    outer_parts = (*named, *conditions, *modifiers.order_by)
    distinct = dict.fromkeys(a for part in outer_parts for a in aggregates(part))
    variables = {aggregate: tree.Var(next(fresh)) for aggregate in distinct}

    def renamed(node: tree.Node) -> tree.Node | None:
        return node if isinstance(node, tree.Exists) else variables.get(node)

    def outer(expression: tree.Expression) -> tree.Expression:
        return cast("tree.Expression", tree.rewrite_outermost(expression, renamed))

    inner = replace(modifiers, having=() if moves_having else modifiers.having)
    groups = tree.GroupPattern((_groups(select.where, inner, variables, tree.Var(next(fresh))),))
    values = () if select.values is None else (select.values,)
    binds = (tree.Bind(outer(item.expression), item.variable) for item in named)
    filters = (tree.FilterClause(outer(condition)) for condition in conditions)
    order = (replace(c, expression=outer(c.expression)) for c in modifiers.order_by)
    items = (i.variable if isinstance(i, tree.SelectAs) else i for i in select.clause.items)
    return tree.SubSelect(
        replace(select.clause, items=tuple(items)),
        tree.GroupPattern((groups if grouped else select.where, *values, *binds, *filters)),
        replace(modifiers, group_by=(), having=(), order_by=tuple(order)),
    )


def _groups(
    where: tree.GroupPattern,
    modifiers: tree.Modifiers,
    variables: Mapping[tree.Node, tree.Var],
    unused: tree.Var,
) -> tree.SubSelect:
    """Return a sub-query with the keys and the aggregates of each group."""
    keys = map(tree.Var, sorted(group_keys(modifiers)))
    values = (tree.SelectAs(cast("tree.Expression", a), v) for a, v in variables.items())
    items: tuple[tree.Var | tree.SelectAs, ...] = (*keys, *values)
    clause = tree.SelectClause(items or (tree.SelectAs(tree.ONE, unused),))
    return tree.SubSelect(clause, where, tree.Modifiers(modifiers.group_by, modifiers.having))


def _uses_names(named: list[tree.SelectAs], modifiers: tree.Modifiers) -> bool:
    """Return whether an expression uses a variable that is neither a key nor aggregated.

    A condition of ORDER BY that is the name of an expression does not count: Oxigraph supports it.
    """
    if any(_free_variables([item]) & _names(named[:n]) for n, item in enumerate(named)):
        return True
    order = [condition.expression for condition in modifiers.order_by]
    alone = [e for e in order if isinstance(e, tree.Var) and e.name in _names(named)]
    return bool(_free_variables(e for e in order if e not in alone) - group_keys(modifiers))


def _names(items: Iterable[tree.SelectAs]) -> set[str]:
    return {item.variable.name for item in items}


def _free_variables(expressions: Iterable[tree.Node]) -> set[str]:
    """Return the variables outside aggregates, including those in the patterns of EXISTS."""
    names, waiting = set[str](), list(expressions)
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.Var):
            names.add(node.name)
        elif not is_aggregate(node):
            waiting.extend(tree.children(node))
    return names


def totally_ordered(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query whose orders are total, including those of its sub-queries.

    ORDER BY uses the order of `rsp_engine.model.terms.term_order`. Where SPARQL leaves the order of
    two terms undefined, Oxigraph compares their texts. So 20 comes before 100, 100 before "15 kg",
    and "15 kg" before 20. This is no order, and Oxigraph aborts the process when its sort detects
    that. So a condition sorts by the keys of its terms, which are texts. An unbound variable has no
    key and comes first, as SPARQL requires.

    >>> from rsp_engine.grammar import parse
    >>> from rsp_engine.grammar.write import serialise
    >>> query = totally_ordered(parse("SELECT ?v WHERE { ?s ?p ?v } ORDER BY DESC(?v) STR(?v)"))
    >>> print(serialise(query).splitlines()[-1])
    ORDER BY DESC(<urn:rsp-engine:builtin:ORDER>(?v)) ASC(STR(?v))
    """
    ordered = tree.rewrite_tree(query, _with_total_order)
    assert isinstance(ordered, tree.QueryUnit), "rewriting keeps the kind of the root"  # noqa: S101
    return ordered


def by_terms(*names: str) -> tuple[tree.OrderCondition, ...]:
    """Return conditions that order rows by the terms of some variables, without ties."""
    return tuple(tree.OrderCondition(_call(FULL_KEY, tree.Var(name))) for name in names)


def _with_total_order(node: tree.Node) -> tree.Node:
    if not isinstance(node, tree.Modifiers):
        return node
    return replace(node, order_by=tuple(map(_total, node.order_by)))


def _total(condition: tree.OrderCondition) -> tree.OrderCondition:
    match condition.expression:
        case tree.BuiltInCall(name) if name in _TOTAL:
            return condition
        case tree.Aggregate("COUNT"):
            return condition
        case tree.FunctionCall(tree.Iri(iri)) if iri.startswith(BUILTIN_NAMESPACE):
            return condition
        case expression:
            return replace(condition, expression=_call(ORDER_KEY, expression))


def _call(name: str, expression: tree.Expression) -> tree.FunctionCall:
    return tree.FunctionCall(tree.Iri(BUILTIN_NAMESPACE + name), (expression,))


def exactly_aggregated(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query that uses the aggregates of the engine.

    COUNT needs no replacement, and SAMPLE and GROUP_CONCAT depend on the order by definition.

    >>> from rsp_engine.grammar import parse
    >>> from rsp_engine.grammar.write import serialise
    >>> text = "SELECT (AVG(DISTINCT ?v) AS ?n) WHERE { ?s ?p ?v }"
    >>> print(serialise(exactly_aggregated(parse(text))).splitlines()[0])
    SELECT (<urn:rsp-engine:builtin:AVG_DISTINCT>(?v) AS ?n)
    """
    exact = tree.rewrite_tree(query, _exact)
    assert isinstance(exact, tree.QueryUnit), "rewriting keeps the kind of the root"  # noqa: S101
    return exact


def _exact(node: tree.Node) -> tree.Node:
    match node:
        case tree.Aggregate(function, argument, distinct) if argument is not None:
            if function in _SUMS:
                return _call(f"{function}_DISTINCT" if distinct else function, argument)
            return _call(function, argument) if function in _EXTREMES else node
        case _:
            return node


def store_text(query: tree.QueryUnit) -> str:
    r"""Return the text of a query in plain SPARQL, with its columns in the same order.

    The parser of Oxigraph rejects names with characters beyond the Basic Multilingual Plane, which
    SPARQL allows in variables, blank nodes and prefixes, and the empty negated property set `!()`,
    which any property matches. Patterns that the planner repeats get new blank node labels, as a
    label belongs to one basic graph pattern (SPARQL 1.1, section 5.1.1).

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
