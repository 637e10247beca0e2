"""WINDOW ?w and GRAPH ?g: the union over the named graphs, written out.

`Graph(?g, P)` is the union over the names of `Join(eval(P, name), {?g -> name})` (SPARQL 1.1,
section 18.6). So P does not see ?g unless it binds it, and a sub-query in P reads one graph.
Oxigraph evaluates P over all graphs at once instead, including those of windows, static data and
services alike. Hence the rewrite:

    WINDOW ?w { P }      { GRAPH :v { P } VALUES ?w { :v } } UNION { GRAPH :w { P } VALUES ... }
"""

from __future__ import annotations

from rsp_engine.grammar import tree

__all__ = ["NamedGraphs"]

_NO_GRAPH = tree.Iri("urn:rsp-engine:no-graph")


class NamedGraphs:
    """The names of a query's windows and static graphs."""

    def __init__(self, query: tree.QueryUnit) -> None:
        clauses = query.form.dataset
        self._windows = dict.fromkeys(w.window for w in query.windows)
        self._graphs = dict.fromkeys(c.graph for c in clauses if isinstance(c, tree.FromNamed))

    def constant(self, node: tree.WindowPattern | tree.GraphPattern) -> tree.Pattern:
        """Return GRAPH with a constant name; a variable becomes a union over the names."""
        variable, group = node.name, node.group
        if isinstance(variable, tree.Iri):
            return tree.GraphPattern(variable, group)
        names = self._windows if isinstance(node, tree.WindowPattern) else self._graphs
        if not names:
            return tree.GroupPattern(
                (tree.InlineData((variable,), ()), tree.GraphPattern(_NO_GRAPH, group))
            )
        groups = tuple(_in_graph(variable, name, group) for name in names)
        return tree.UnionPattern(groups) if len(groups) > 1 else groups[0]


def _in_graph(variable: tree.Var, name: tree.Iri, group: tree.GroupPattern) -> tree.GroupPattern:
    named = tree.InlineData((variable,), ((name,),))
    return tree.GroupPattern((tree.GraphPattern(name, group), named))
