"""The explanation of a ranked query: what its operator does, and the order of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.incomplete.config import IncompleteConfig
from rsp_engine.evaluators.pairs.config import PairsConfig
from rsp_engine.evaluators.topk import TopkConfig
from rsp_engine.model.quantities import quantity

if TYPE_CHECKING:
    from rsp_engine.evaluators.incomplete.config import Attribute
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.protocol import EvaluatorConfig
    from rsp_engine.operators.aggregates.groups import Grouping
    from rsp_engine.operators.sparql.pane_matcher import MatcherConfig

__all__ = ["RankingExplanation", "explain_order", "explain_ranking"]


@dataclass(frozen=True, slots=True)
class RankingExplanation:
    """The name of the operator, what it keeps, and facts about it: a label and a sentence each."""

    operator: str
    keeps: str
    facts: dict[str, str]


def explain_ranking(physical: PhysicalPlan) -> RankingExplanation | None:
    """Return how a top-k operator ranks a query; None if none does."""
    match physical.operator:
        case TopkConfig(matching=matching) as config:
            names = _names(matching)
            facts = {
                "object": f"a solution ({names}); a repeated arrival renews it",
                "match": _match(matching),
                "score": _score(descending=config.descending, by_oxigraph=matching.scoring is None),
            }
            return RankingExplanation(
                config.ranker, f"the best {config.k}{_without(config.offset)}", facts
            )
        case GroupTopkConfig(matching=matching, grouping=grouping) as config:
            facts = {
                "object": _group(grouping, matching),
                "match": _match(matching),
                "score": _score(descending=config.descending, by_oxigraph=False),
            }
            return RankingExplanation(
                _partials(grouping), f"the best {config.k}{_without(config.offset)}", facts
            )
        case AcquaTopConfig() as config:
            return _acquatop(config, physical)
        case PairsConfig() as config:
            return _pairs(config)
        case IncompleteConfig() as config:
            return _incomplete(config)
        case _:
            return None


def _incomplete(config: IncompleteConfig) -> RankingExplanation:
    [first, *_] = config.attributes
    keys = " ".join(f"?{first.matching.names[place]}" for place in first.keys)
    required = [stream for stream, each in _streams(config) if each.required]
    together = {
        ("sum", "sum"): "values are added up",
        ("max", "max"): "the largest value counts",
        ("sum", "max"): "the largest value of each stream counts, and these are added up",
    }[config.function, config.repeats]
    ranges = ", ".join(
        f"{each.high / each.weight:g} of <{stream}>" for stream, each in _streams(config)
    )
    facts = {
        "object": f"the key {keys}; a repeated value counts once",
        "missing": "".join(["counts as zero", *(f", but <{s}> is required" for s in required)]),
        "score": f"larger is better: {together}",
        "range": f"up to {ranges}; a larger value raises this bound",
        "ties": "are broken as on the general path, which evaluates the best objects",
    }
    keeps = f"the best {config.k}"
    if config.is_approximate:
        bound = "" if config.bound is None else f", at most {config.bound} instances"
        facts["exact"] = "no: an object that was unlikely to rank among the best may be missing"
        return RankingExplanation("approximate", f"{keeps}{bound}", facts)
    return RankingExplanation(config.algorithm, keeps, facts)


def _streams(config: IncompleteConfig) -> list[tuple[str, Attribute]]:
    return list(zip(config.streams, config.attributes, strict=True))


def _pairs(config: PairsConfig) -> RankingExplanation:
    shape, half = config.shape, len(config.names) // 2
    first, second = (
        " ".join(f"?{name}" for name in names)
        for names in (config.names[:half], config.names[half:])
    )
    key = config.names[shape.key], config.names[half + shape.key]
    by = "text" if shape.is_text else "value"
    facts = {
        "object": f"a solution ({first}) or ({second}); a repeated arrival renews it",
        "pair": f"two objects, ?{key[0]} before ?{key[1]} by {by}; arrives with the later one",
        "match": _match(shape.matching),
        "score": _score(descending=shape.scoring.descending, by_oxigraph=False),
        "global": config.why,
        "shared": "all queries with the same objects and score share one skyband",
    }
    return RankingExplanation(
        "K-skyband", f"the best {quantity(config.k, 'pair')}{_without(config.offset)}", facts
    )


def _acquatop(config: AcquaTopConfig, physical: PhysicalPlan) -> RankingExplanation:
    [service] = physical.services
    matching = config.matching
    facts = {
        "object": _object(config, matching),
        "match": _match(matching),
        "score": _score(descending=config.descending, by_oxigraph=False),
    }
    best = f"the best {config.k}{_without(config.offset)}"
    if config.grouping is not None:
        facts["monotone"] = config.proof.why
        facts["memory"] = "every group of the open windows; the list is rebuilt for each window"
        by = f"and the next {config.n}, for each active window"
        if service.policy.proposer != "list":
            by = f"{service.policy.name} considers all groups"
        return RankingExplanation(_partials(config.grouping), f"{best}; {by}", facts)
    if service.policy.proposer != "list":
        return RankingExplanation(
            "whole window", f"{best}; {service.policy.name} considers all objects", facts
        )
    facts["monotone"] = config.proof.why
    facts["memory"], facts["outside"] = _memory(config)
    return RankingExplanation("Topk+N", f"{best}, and the next {config.n}", facts)


def _memory(config: AcquaTopConfig) -> tuple[str, str]:
    """Return what is kept of objects, and how a changed object outside the list is scored."""
    if config.memory == "table":
        kept = "every object of the open windows (table)"
        return kept, "a changed object outside the list is scored from its streamed value"
    kept = "the list, and the last pane of each other key (list)"
    if config.is_monotone:
        return kept, "a changed object outside the list is scored from the least value of its pane"
    return kept, "a changed object outside the list is left out, as its score may fall or rise"


def _object(config: AcquaTopConfig, matching: MatcherConfig) -> str:
    key = " ".join(f"?{matching.names[place]}" for place in config.key)
    if config.grouping is not None:
        return f"{_group(config.grouping, matching)}, joined by {key}"
    if config.arrivals == "all":
        return f"a solution ({_names(matching)}), joined by {key}; a repeated arrival renews it"
    return f"the join key {key}; the latest arrival in a window counts"


def _partials(grouping: Grouping) -> str:
    return f"pane partials ({grouping.function.upper()})"


def _group(grouping: Grouping, matching: MatcherConfig) -> str:
    keys = " ".join(f"?{matching.names[place]}" for place in grouping.keys)
    return f"the solutions with the same {keys}; a repeated solution counts once"


def _names(matching: MatcherConfig) -> str:
    return " ".join(f"?{name}" for name in matching.names)


def _match(matching: MatcherConfig) -> str:
    if matching.is_plain:
        return "triple by triple" + "; each filter once for each term" * bool(matching.filters)
    if len(matching.patterns) > 1:
        return "pane by pane with Oxigraph: one element contains all triples of a solution"
    return "pane by pane with Oxigraph, filters included"


def _score(*, descending: bool, by_oxigraph: bool) -> str:
    how = "computed by Oxigraph" if by_oxigraph else "computed as arithmetic"
    return f"{'larger' if descending else 'smaller'} is better, {how}"


def _without(offset: int) -> str:
    return f", without the first {offset}" if offset else ""


_TERMS = "SPARQL's, extended to a total order of all terms"
_SOLUTION = "the later event time, then the larger solution"
_PAIR = "the event time of the later object, then of the other one"
_GROUP = "their latest event time, then the larger key"


def explain_order(config: EvaluatorConfig) -> str | None:
    """Return the order of the rows of a ranked query, in a sentence; None if it does not rank."""
    if not config.query.is_ranked:
        return None
    match config:
        case TopkConfig(ranker=ranker):
            by = f"{ranker} ranks numbers whose order float64 preserves, MinTopk other terms"
            return f"{_TERMS}: {by}; ties by {_SOLUTION}"
        case AcquaTopConfig(grouping=None):
            by = "numbers whose order float64 preserves are ranked as such, others by their terms"
            return f"{_TERMS}: {by}; ties by {_SOLUTION}"
        case GroupTopkConfig() | AcquaTopConfig():
            by = "sums are exact, and values whose order float64 may change are ranked as terms"
            return f"{_TERMS}: {by}; ties by {_GROUP}"
        case PairsConfig():
            by = (
                "scores are float64 if it preserves this order, otherwise Oxigraph sorts the window"
            )
            return f"{_TERMS}: {by}; ties by {_PAIR}"
        case IncompleteConfig():
            by = "float64 finds the best objects, and Oxigraph sorts them by their terms"
            return f"{_TERMS}: {by}; ties by their terms"
        case _ if config.query.is_timed:
            return f"{_TERMS}: Oxigraph sorts by sort keys of the terms; ties by {_SOLUTION}"
        case _:
            return f"{_TERMS}: Oxigraph sorts by sort keys of the terms; ties by their terms"
