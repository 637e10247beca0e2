"""The configuration of AcquaTop: a window joined with a SERVICE, ranked by a score over both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from rsp_engine.operators.scoring.scoring_function import Scoring, evaluate
from rsp_engine.operators.sparql.sparql_query import SparqlConfig

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Floats
    from rsp_engine.operators.aggregates.groups import Grouping
    from rsp_engine.operators.scoring.monotonicity import Proof
    from rsp_engine.operators.sparql.pane_matcher import MatcherConfig

__all__ = ["AcquaTopConfig", "ArrivalRule"]

ArrivalRule = Literal["latest", "all"]
"""For several arrivals of a join key in a window: the latest counts, or each is an object."""


@dataclass(frozen=True, slots=True)
class AcquaTopConfig(SparqlConfig):
    """The text is that of the general path, and defines what the query means.

    `matching` gives the solutions of the window, with x_S; `key` has the positions of the join key
    in a solution. `scoring` is F, over the variables `streaming` and `remote`, if it has them. With
    a `grouping`, objects are groups of solutions, and x_S is an aggregate. `scored` is the query
    for the scores of objects as terms; None if the score is a variable.
    """

    tag: ClassVar[str] = "Joined"

    matching: MatcherConfig | None = None
    projected: SparqlConfig | None = None
    grouping: Grouping | None = None
    key: tuple[int, ...] = ()
    scoring: Scoring | None = None
    streaming: str | None = None
    remote: str | None = None
    descending: bool = True
    k: int = 1
    offset: int = 0
    n: int = 0
    arrivals: ArrivalRule = "latest"
    is_judged: bool = False
    proof: Proof | None = None
    scored: SparqlConfig | None = None

    @property
    def is_monotone(self) -> bool:
        """Whether a larger x_S is proved not to be worse."""
        good = ("rises", "constant") if self.descending else ("falls", "constant")
        return self.proof is not None and self.proof.direction in good

    def scores(self, streaming: Floats, remote: Floats) -> Floats:
        """Return F as Topk+N needs it: larger is better, NaN only without a remote value.

        F is computed in float64, whatever the types of the terms. An object without a score gets
        -inf.
        """
        assert self.scoring is not None, "the planner sets scoring"  # noqa: S101
        columns = {self.streaming: streaming, self.remote: remote}
        scores = evaluate(self.scoring, {n: c for n, c in columns.items() if n is not None})
        scores = np.broadcast_to(scores if self.descending else -scores, streaming.shape)
        return np.where(np.isnan(remote), np.nan, np.where(np.isnan(scores), -np.inf, scores))
