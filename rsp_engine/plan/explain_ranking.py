"""What a top-k operator does with a query, as people and as programs read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rsp_engine.operators.ranked import RankedConfig
from rsp_engine.plan.joined import JoinedConfig

if TYPE_CHECKING:
    from rsp_engine.operators.matching import Matching
    from rsp_engine.plan.physical import PhysicalPlan

__all__ = ["Ranking", "ranking"]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The name of the operator, what it keeps, and more about it: a word and a sentence each."""

    operator: str
    keeps: str
    facts: dict[str, str]


def ranking(physical: PhysicalPlan) -> Ranking | None:
    """Return how a query is ranked, if a top-k operator does it."""
    match physical.operator:
        case RankedConfig(matching=matching) as config if matching is not None:
            names = _names(matching)
            facts = {
                "object": f"a solution ({names}); one that arrives again lives on",
                "match": _match(matching),
                "score": _score(descending=config.descending, is_asked=matching.scoring is None),
            }
            return Ranking(config.ranker, f"the best {config.k}{_without(config.offset)}", facts)
        case JoinedConfig(matching=matching) as config if matching is not None:
            return _joined(config, matching, physical)
        case _:
            return None


def _joined(config: JoinedConfig, matching: Matching, physical: PhysicalPlan) -> Ranking:
    [service] = physical.services
    facts = {
        "object": _object(config, matching),
        "match": _match(matching),
        "score": _score(descending=config.descending, is_asked=False),
    }
    best = f"the best {config.k}{_without(config.offset)}"
    if service.policy.proposer != "list":
        return Ranking("whole window", f"{best}; {service.policy.name} looks at all objects", facts)
    assert config.proof is not None, "the planner proves or fails to"  # noqa: S101
    facts["monotone"] = config.proof.why
    facts["outside"] = "a changed object that is not in the list is scored by what it streamed"
    return Ranking("Topk+N", f"{best}, and {config.n} that stand by", facts)


def _object(config: JoinedConfig, matching: Matching) -> str:
    key = " ".join(f"?{matching.names[place]}" for place in config.key)
    if config.arrivals == "all":
        return f"each arrival of ({_names(matching)}), joined by {key}"
    return f"the join key {key}; of several arrivals in a window the latest counts"


def _names(matching: Matching) -> str:
    return " ".join(f"?{name}" for name in matching.names)


def _match(matching: Matching) -> str:
    if matching.is_filtered or matching.scoring is None:
        return "pane by pane, by Oxigraph, with the filters"
    return "triple by triple"


def _score(*, descending: bool, is_asked: bool) -> str:
    how = "asked of Oxigraph" if is_asked else "by arithmetic"
    return f"{'larger' if descending else 'smaller'} is better, {how}"


def _without(offset: int) -> str:
    return f", the first {offset} left out" if offset else ""
