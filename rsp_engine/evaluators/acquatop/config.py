"""The configuration of the AcquaTop evaluator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rsp_engine.evaluators.acquatop.evaluator import AcquaTopEvaluator
    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.operators.aggregates.groups import Grouping
    from rsp_engine.operators.scoring.monotonicity import Proof
    from rsp_engine.operators.scoring.scoring_function import Scoring
    from rsp_engine.operators.sparql.pane_matcher import MatcherConfig
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.options import ArrivalRule, ObjectMemory

__all__ = ["AcquaTopConfig"]


@dataclass(frozen=True, slots=True)
class AcquaTopConfig:
    """`matching` gives the solutions of the window, with x_S.

    `key` has the positions of the join key in a solution. `scoring` is F, over the variables
    `streaming` and `remote`, if it has them; `proof` says how it depends on x_S. With a `grouping`,
    objects are groups of solutions, and x_S is an aggregate. `projected` is the query for the rows:
    see `Projector`. `scored` is the query for the scores of objects as terms; None if the score is
    a variable. With the memory `list`, only the objects of the Super-MTK+N list are kept.
    """

    tag: ClassVar[str] = "Joined"
    scan_kind: ClassVar[ScanKind] = "solutions"

    query: SparqlConfig
    matching: MatcherConfig
    key: tuple[int, ...]
    scoring: Scoring
    streaming: str | None
    remote: str | None
    descending: bool
    k: int
    offset: int
    n: int
    arrivals: ArrivalRule
    is_judged: bool
    proof: Proof
    grouping: Grouping | None = None
    projected: SparqlConfig | None = None
    scored: SparqlConfig | None = None
    memory: ObjectMemory = "table"

    def evaluator(self, context: EvaluatorContext) -> AcquaTopEvaluator:
        """Return the evaluator of a run."""
        # Imported by a run that needs it: the planner reads only configurations.
        from rsp_engine.evaluators.acquatop.evaluator import AcquaTopEvaluator

        [refresh] = context.refreshes
        return AcquaTopEvaluator(self, context.store(), refresh)

    @property
    def is_monotone(self) -> bool:
        """Whether a larger x_S is proved not to be worse."""
        good = ("rises", "constant") if self.descending else ("falls", "constant")
        return self.proof.direction in good
