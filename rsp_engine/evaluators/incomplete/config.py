"""The configuration of the evaluator of incomplete objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from rsp_engine.evaluators.incomplete.evaluator import IncompleteEvaluator
    from rsp_engine.evaluators.protocol import EvaluatorContext, ScanKind
    from rsp_engine.operators.incomplete.observations import ScoreAggregate
    from rsp_engine.operators.sparql.pane_matcher import MatcherConfig
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig

__all__ = ["Algorithm", "Attribute", "IncompleteConfig"]

Algorithm = Literal["EAA", "SLA", "approximate", "Oracle"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of the objects, observed in one scan.

    `keys` and `value` are positions in a solution of `matching`. `weight` is its factor in the
    score, and `high` its largest weighted value. Objects without a `required` attribute are not
    ranked.
    """

    scan: int
    matching: MatcherConfig
    keys: tuple[int, ...]
    value: int
    weight: float = 1.0
    high: float = 1.0
    required: bool = False


@dataclass(frozen=True, slots=True)
class IncompleteConfig:
    """`algorithm` finds the top k objects; the approximate one keeps at most `bound` instances.

    `function` aggregates the values of different attributes, `repeats` those of the same attribute.
    `streams` are the streams of the attributes. Without a `bound`, the number of instances is not
    limited.
    """

    tag: ClassVar[str] = "Collected"
    scan_kind: ClassVar[ScanKind] = "triples"

    query: SparqlConfig
    windows: tuple[str, ...]
    streams: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    function: ScoreAggregate
    repeats: ScoreAggregate
    k: int
    algorithm: Algorithm
    bound: int | None

    def evaluator(self, context: EvaluatorContext) -> IncompleteEvaluator:
        """Return the evaluator of a run. Static graphs are not loaded: the query reads none."""
        # Imported by a run that needs it: the planner reads only configurations.
        from rsp_engine.evaluators.incomplete.evaluator import IncompleteEvaluator

        return IncompleteEvaluator(self)

    @property
    def is_approximate(self) -> bool:
        """Whether answers may miss objects."""
        return self.algorithm == "approximate"
