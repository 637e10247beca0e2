"""The configuration of the evaluator of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rsp_engine.evaluators.pairs.evaluator import PairsEvaluator
    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.operators.pairs.shared_skyband import PairShape
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.element_solutions import ElementBlock

__all__ = ["PairsConfig"]


@dataclass(frozen=True, slots=True)
class PairsConfig:
    """The answer of a window of `size` is its top k pairs without the first `offset`.

    `names` are the variables of the first object, then of the second; `why` states whether the
    score is global. A window that the skyband cannot answer is evaluated as a whole, over the
    solutions of its elements for `blocks`, if there are any.
    """

    tag: ClassVar[str] = "Pairs"
    scan_kind: ClassVar[ScanKind] = "timed triples"

    query: SparqlConfig
    shape: PairShape
    names: tuple[str, ...]
    projected: SparqlConfig | None
    blocks: tuple[ElementBlock, ...]
    k: int
    offset: int
    size: int
    why: str

    def evaluator(self, context: EvaluatorContext) -> PairsEvaluator:
        """Return the evaluator of a run."""
        # Imported by a run that needs it: the planner reads only configurations.
        from rsp_engine.evaluators.pairs.evaluator import PairsEvaluator

        [window] = context.windows
        return PairsEvaluator(self, context.store(), window, context.skybands)
