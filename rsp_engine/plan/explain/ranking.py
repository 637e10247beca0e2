"""The explanation of a ranked query: what its operator does, and the order of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.evaluators.acquatop.evaluator import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.incomplete import IncompleteConfig
from rsp_engine.evaluators.pairs import PairsConfig
from rsp_engine.evaluators.topk import TopkConfig

if TYPE_CHECKING:
    from rsp_engine.evaluators.incomplete import Attribute
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.protocol import EvaluatorConfig
    from rsp_engine.operators.aggregates.groups import Grouping
    from rsp_engine.operators.sparql.pane_matcher import Matching

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
                "object": f"a solution ({names}); one that arrives again lives on",
                "match": _match(matching),
                "score": _score(descending=config.descending, is_asked=matching.scoring is None),
            }
            return RankingExplanation(
                config.ranker, f"the best {config.k}{_without(config.offset)}", facts
            )
        case GroupTopkConfig(matching=matching, grouping=grouping) as config:
            facts = {
                "object": _group(grouping, matching),
                "match": _match(matching),
                "score": _score(descending=config.descending, is_asked=False),
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
        ("sum", "max"): "values are added up, of several from one stream the largest for a start",
    }[config.function, config.repeats]
    ranges = ", ".join(
        f"{each.high / each.weight:g} of <{stream}>" for stream, each in _streams(config)
    )
    facts = {
        "object": f"the key {keys}; a value that arrives again counts once",
        "missing": "counts as zero" + "".join(f", but not of <{stream}>" for stream in required),
        "score": f"larger is better: {together}",
        "range": f"up to {ranges}; a larger value is a reason to look at the window anew",
        "ties": "are told apart as on the general path, which is asked about the best objects",
    }
    keeps = f"the best {config.k}"
    if config.is_approximate:
        bound = "" if config.bound is None else f", at most {config.bound} instances"
        facts["exact"] = "no: an object that was not likely to be among the best may be missed"
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
    by = "their texts" if shape.is_text else "their values"
    facts = {
        "object": f"a solution ({first}) or ({second}); one that arrives again lives on",
        "pair": f"two objects, ?{key[0]} before ?{key[1]} by {by}; it arrives with the later one",
        "match": _match(shape.matching),
        "score": _score(descending=shape.scoring.descending, is_asked=False),
        "global": config.why,
        "shared": "one skyband by all queries with the same objects and score",
    }
    return RankingExplanation(
        "K-skyband", f"the best {config.k} pairs{_without(config.offset)}", facts
    )


def _acquatop(config: AcquaTopConfig, physical: PhysicalPlan) -> RankingExplanation:
    [service] = physical.services
    matching = config.matching
    facts = {
        "object": _object(config, matching),
        "match": _match(matching),
        "score": _score(descending=config.descending, is_asked=False),
    }
    best = f"the best {config.k}{_without(config.offset)}"
    if config.grouping is not None:
        facts["monotone"] = config.proof.why
        by = f"and {config.n} that stand by, of each active window"
        if service.policy.proposer != "list":
            by = f"{service.policy.name} looks at all groups"
        return RankingExplanation(_partials(config.grouping), f"{best}; {by}", facts)
    if service.policy.proposer != "list":
        return RankingExplanation(
            "whole window", f"{best}; {service.policy.name} looks at all objects", facts
        )
    facts["monotone"] = config.proof.why
    facts["outside"] = "a changed object that is not in the list is scored by what it streamed"
    return RankingExplanation("Topk+N", f"{best}, and {config.n} that stand by", facts)


def _object(config: AcquaTopConfig, matching: Matching) -> str:
    key = " ".join(f"?{matching.names[place]}" for place in config.key)
    if config.grouping is not None:
        return f"{_group(config.grouping, matching)}, joined by {key}"
    if config.arrivals == "all":
        return f"a solution ({_names(matching)}), joined by {key}; one that arrives again lives on"
    return f"the join key {key}; of several arrivals in a window the latest counts"


def _partials(grouping: Grouping) -> str:
    return f"pane partials ({grouping.function.upper()})"


def _group(grouping: Grouping, matching: Matching) -> str:
    keys = " ".join(f"?{matching.names[place]}" for place in grouping.keys)
    return f"the solutions with the same {keys}; one that arrives again counts once"


def _names(matching: Matching) -> str:
    return " ".join(f"?{name}" for name in matching.names)


def _match(matching: Matching) -> str:
    if matching.is_plain:
        return "triple by triple"
    if len(matching.patterns) > 1:
        return "pane by pane, by Oxigraph: the triples of a solution come in one element"
    return "pane by pane, by Oxigraph, with the filters"


def _score(*, descending: bool, is_asked: bool) -> str:
    how = "asked of Oxigraph" if is_asked else "by arithmetic"
    return f"{'larger' if descending else 'smaller'} is better, {how}"


def _without(offset: int) -> str:
    return f", the first {offset} left out" if offset else ""


_TERMS = "SPARQL's, completed to one order of all terms"
_SOLUTION = "the later event time, then the larger solution"
_PAIR = "the event time of the later object, then of the other one"
_GROUP = "their latest event time, then the larger key"


def explain_order(config: EvaluatorConfig) -> str | None:
    """Return the order of the rows of a ranked query, in a sentence; None if it does not rank."""
    if not config.query.is_ranked:
        return None
    match config:
        case TopkConfig(ranker=ranker):
            by = f"{ranker} ranks what float64 has in this order, MinTopk the ranks of other terms"
            return f"{_TERMS}: {by}; equal ones by {_SOLUTION}"
        case AcquaTopConfig(grouping=None):
            by = "numbers that float64 has in this order are ranked as such, others by their terms"
            return f"{_TERMS}: {by}; equal ones by {_SOLUTION}"
        case GroupTopkConfig() | AcquaTopConfig():
            by = "sums are exact, and what float64 may order otherwise is ranked by its terms"
            return f"{_TERMS}: {by}; equal groups by {_GROUP}"
        case PairsConfig():
            by = "scores are those of float64 where it has this order, else the window is asked"
            return f"{_TERMS}: {by}; equal ones by {_PAIR}"
        case IncompleteConfig():
            by = "objects are found by float64, and the best are asked for their terms"
            return f"{_TERMS}: {by}; equal ones by their terms"
        case _ if config.query.is_timed:
            return f"{_TERMS}: Oxigraph sorts by keys of the terms; equal ones by {_SOLUTION}"
        case _:
            return f"{_TERMS}: Oxigraph sorts by keys of the terms; equal ones by their terms"
