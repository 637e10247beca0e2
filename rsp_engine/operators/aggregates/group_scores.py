"""Scores of groups in SPARQL's order, for values of any kind.

Where float64 preserves the order of the aggregates and of F over them, the scores are F. Otherwise
the aggregates and F over them are computed as terms, and the ranks of these terms are the scores:

    MAX(?name)    "Anna"  "Bert"  "Bert"          MAX(?v) * 2    -3   unbound   10
    scores        0       1       1               scores         1    0         2

A group without a value comes first under ASC and last under DESC, as SPARQL requires.
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
    """Return scores for order keys of terms: larger for better keys, equal for equal keys.

    >>> ranks_of(["b", "a", "b"], descending=False)
    array([-1., -0., -1.])
    """
    order = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    ranks = np.array([order[key] for key in keys], dtype=np.float64)
    return ranks if descending else -ranks


class GroupScores:
    """A function from the totals of groups to scores; larger is better. Time for terms: O(groups).

    `scored` is the query that computes F as a term; None if F is the aggregate itself.
    """

    def __init__(
        self, groups: Groups, scoring: Scoring, scored: SparqlConfig | None, *, descending: bool
    ) -> None:
        self._groups = groups
        self._scoring = scoring
        self._query = None if scored is None else SparqlQuery(scored)
        self._descending = descending

    def __call__(self, totals: Totals) -> Floats:
        """Return the score of each group of the current window."""
        scores = self._float_scores(totals)
        # A quotient by zero is infinite with the sign of the zero, which partials do not keep.
        if scores is not None and np.isfinite(scores).all():
            return scores if self._descending else -scores
        terms = self._term_scores(self._groups.terms(totals.keys.tolist()))
        return ranks_of([*map(order_key, terms)], descending=self._descending)

    def order_keys(self, aggregates: Sequence[Term | None]) -> list[str]:
        """Return the order keys of F over some aggregates, given as terms."""
        return [*map(order_key, self._term_scores(aggregates))]

    def _float_scores(self, totals: Totals) -> Floats | None:
        """Return F of the aggregates, or None if float64 may not preserve SPARQL's order."""
        column = self._groups.column(totals)
        if column is None:
            return None
        variable = self._groups.config.variable
        return ordered_scores(self._scoring, {variable: column}, len(totals.keys))

    def _term_scores(self, terms: Sequence[Term | None]) -> Sequence[Term | None]:
        """Return F of aggregates as terms; F of each distinct aggregate is computed once."""
        if self._query is None:
            return terms
        distinct = [*dict.fromkeys(terms)]
        variable = self._groups.config.variable
        objects = [{} if term is None else {variable: term} for term in distinct]
        # F does not use the current time.
        scores = (score for [score] in ask_objects(self._query, objects, now=0))
        score_of = dict(zip(distinct, scores, strict=True))
        return [score_of[term] for term in terms]
