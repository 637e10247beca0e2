"""Property paths as SPARQL 1.1 defines them (sections 9 and 18.2.2), where Oxigraph differs.

Alternatives are a union, so two paths to the same node are two solutions; Oxigraph gives one. A
zero-length path leads from a term to itself, even if the term is not in the graph; Oxigraph finds
nothing then. These paths are rewritten:

    ?s :p|:q ?o        { ?s :p ?o } UNION { ?s :q ?o }
    ?s :r/(:p|:q) ?o   ?s :r ?v . { ?v :p ?o } UNION { ?v :q ?o }
    :c :p* ?o          { :c :p* ?o } UNION { VALUES ?o { :c } FILTER NOT EXISTS { :c :p* :c } }
    :c :p* :c          the pattern is dropped: it always holds

Paths inside `*`, `+` and `?` have set semantics and stay as they are. Blank nodes of the rewritten
patterns become variables, since a label must not occur in two groups; `SELECT *` of a sub-query is
expanded before, so that it does not show them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from rsp_engine.grammar import tree
from rsp_engine.grammar.scope import projected_variables
from rsp_engine.grammar.triples import plain_triples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.grammar.triples import PlainTriple, TripleNode

__all__ = ["standard_paths"]


def standard_paths(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query whose paths Oxigraph evaluates as SPARQL defines them.

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
