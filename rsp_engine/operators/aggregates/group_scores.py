"""Scores of groups that have SPARQL's order, whatever the values are.

Where float64 tells the order of the aggregates and of F over them, the scores are F. Otherwise the
aggregates and F over them are found as terms, and the ranks of these terms are the scores:

    MAX(?name)    "Anna"  "Bert"  "Bert"          MAX(?v) * 2    -3   unbound   10
    scores        0       1       1               scores         1    0         2

What has no value comes first under ASC and last under DESC, as SPARQL says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.model.terms.term_order import order_key
from rsp_engine.operators.scoring.exact_scores import ordered_scores
from rsp_engine.operators.sparql.projector import ask_objects
from rsp_engine.operators.sparql.sparql_query import SparqlQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Floats
    from rsp_engine.model.terms.term import Term
    from rsp_engine.operators.aggregates.groups import Groups
    from rsp_engine.operators.aggregates.pane_partials import Totals
    from rsp_engine.operators.scoring.scoring_function import Scoring
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

__all__ = ["GroupScores", "ranks_of"]


def ranks_of(keys: Sequence[str], *, descending: bool) -> Floats:
    """Return larger numbers for better keys of terms, the same ones for equal keys.

    >>> ranks_of(["b", "a", "b"], descending=False)
    array([-1., -0., -1.])
    """
    order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    ranks = np.array([order[key] for key in keys], dtype=np.float64)
    return ranks if descending else -ranks


class GroupScores:
    """Gives the scores of groups of a window, larger is better. Time for terms: O(groups).

    `scored` asks for the terms that groups have as their scores; nothing if these are aggregates.
    """

    def __init__(
        self, groups: Groups, scoring: Scoring, scored: SparqlConfig | None, *, descending: bool
    ) -> None:
        self._groups = groups
        self._scoring = scoring
        self._asking = None if scored is None else SparqlQuery(scored)
        self._descending = descending

    def __call__(self, totals: Totals) -> Floats:
        """Return the score of each group of the window at hand."""
        found = self._plain(totals)
        # A quotient by zero is infinite, and its sign is that of the zero, which partials lack.
        if found is not None and np.isfinite(found).all():
            return found if self._descending else -found
        terms = self._scored(self._groups.terms(totals.keys.tolist()))
        return ranks_of([*map(order_key, terms)], descending=self._descending)

    def _plain(self, totals: Totals) -> Floats | None:
        """Return F of the aggregates, if float64 has SPARQL's order."""
        column = self._groups.column(totals)
        if column is None:
            return None
        variable = self._groups.config.variable
        return ordered_scores(self._scoring, {variable: column}, len(totals.keys))

    def _scored(self, terms: Sequence[Term | None]) -> Sequence[Term | None]:
        """Return F of aggregates; what several groups have is asked for once."""
        if self._asking is None:
            return terms
        each = [*dict.fromkeys(terms)]
        variable = self._groups.config.variable
        objects = [{} if term is None else {variable: term} for term in each]
        scores = (score for [score] in ask_objects(self._asking, objects, now=0))  # it needs no now
        found = dict(zip(each, scores, strict=True))
        return [found[term] for term in terms]
