"""The configuration of the evaluator of pairs, and the skybands that its queries share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rsp_engine.evaluators.pairs.evaluator import PairsEvaluator
    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.operators.pairs.shared_skyband import PairShape, SharedSkyband
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.windows.element_solutions import ElementBlock

__all__ = ["PairsConfig", "Skybands"]


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


@dataclass(frozen=True, slots=True)
class Skybands:
    """The skybands shared by queries: one for each shape."""

    each: list[SharedSkyband] = field(default_factory=list)

    def of(self, shape: PairShape, k: int, size: int) -> SharedSkyband:
        """Return the skyband of a shape, enlarged to the k and the window size of a query."""
        from rsp_engine.operators.pairs.shared_skyband import SharedSkyband

        skyband = next((each for each in self.each if each.shape == shape), None)
        if skyband is None:
            skyband = SharedSkyband(shape)
            self.each.append(skyband)
        skyband.want(k, size)
        return skyband
