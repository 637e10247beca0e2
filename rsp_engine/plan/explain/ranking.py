"""What a top-k operator does with a query, as people and as programs read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.evaluators.group_topk import GroupTopkConfig
from rsp_engine.evaluators.incomplete import IncompleteConfig
from rsp_engine.evaluators.pairs import PairsConfig
from rsp_engine.evaluators.topk import TopkConfig

if TYPE_CHECKING:
    from rsp_engine.evaluators.incomplete import Attribute
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.operators.aggregates.groups import Grouping
    from rsp_engine.operators.pairs.shared_skyband import PairShape
    from rsp_engine.operators.sparql.pane_matcher import Matching

__all__ = ["RankingExplanation", "explain_ranking"]


@dataclass(frozen=True, slots=True)
class RankingExplanation:
    """The name of the operator, what it keeps, and more about it: a word and a sentence each."""

    operator: str
    keeps: str
    facts: dict[str, str]


def explain_ranking(physical: PhysicalPlan) -> RankingExplanation | None:
    """Return how a query is ranked, if a top-k operator does it."""
    match physical.operator:
        case TopkConfig(matching=matching) as config if matching is not None:
            names = _names(matching)
            facts = {
                "object": f"a solution ({names}); one that arrives again lives on",
                "match": _match(matching),
                "score": _score(descending=config.descending, is_asked=matching.scoring is None),
            }
            return RankingExplanation(
                config.ranker, f"the best {config.k}{_without(config.offset)}", facts
            )
        case GroupTopkConfig(matching=matching, grouping=grouping) as config if (
            matching is not None and grouping is not None
        ):
            facts = {
                "object": _group(grouping, matching),
                "match": _match(matching),
                "score": _score(descending=config.descending, is_asked=False),
            }
            return RankingExplanation(
                _partials(grouping), f"the best {config.k}{_without(config.offset)}", facts
            )
        case AcquaTopConfig(matching=matching) as config if matching is not None:
            return _joined(config, matching, physical)
        case PairsConfig(shape=shape) as config if shape is not None:
            return _paired(config, shape)
        case IncompleteConfig() as config:
            return _collected(config)
        case _:
            return None


def _collected(config: IncompleteConfig) -> RankingExplanation:
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


def _paired(config: PairsConfig, shape: PairShape) -> RankingExplanation:
    half = len(config.names) // 2
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


def _joined(
    config: AcquaTopConfig, matching: Matching, physical: PhysicalPlan
) -> RankingExplanation:
    [service] = physical.services
    facts = {
        "object": _object(config, matching),
        "match": _match(matching),
        "score": _score(descending=config.descending, is_asked=False),
    }
    best = f"the best {config.k}{_without(config.offset)}"
    assert config.proof is not None, "the planner proves or fails to"  # noqa: S101
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
