"""Which ranked queries with SERVICE are run by AcquaTop: Topk+N over a replica under a budget.

A ranked query as without SERVICE (see `ranked`), and beside the window one SERVICE clause with a
constant IRI that shares variables with the pattern: the join key. The score is arithmetic over at
most one variable of the window and one of the remote side, which may have terms of any kind. A key
mostly has one remote solution; where it has several, each is a row.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.acquatop.config import JoinedConfig
from rsp_engine.grammar import tree
from rsp_engine.operators.scoring.scoring_function import Scoring, variables
from rsp_engine.operators.sparql.sparql_query import GeneralConfig
from rsp_engine.plan.monotone import prove
from rsp_engine.plan.scoring import scoring
from rsp_engine.plan.services import chosen_policy, service_plan
from rsp_engine.plan.shapes.service_rewrite import remote_pattern, served_path
from rsp_engine.plan.shapes.topk import (
    Functions,
    StreamSide,
    WhyNot,
    free_variable,
    is_ranking_of_groups,
    matching_of,
    of_objects,
    order_expression,
    projection,
    refusals,
    stream_side,
)
from rsp_engine.plan.variables import certain, named, visible
from rsp_engine.policies.voi import Voi

if TYPE_CHECKING:
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.operators.scoring.monotonicity import Proof
    from rsp_engine.plan.options import Match, Options

__all__ = [
    "DEFAULT_POLICY",
    "Scored",
    "Sides",
    "asked_score",
    "joined_config",
    "joined_path",
    "service_of",
    "sides_of",
]

DEFAULT_POLICY = "AT-TSM"


def joined_path(query: tree.Query, options: Options) -> tuple[JoinedConfig, ServicePlan] | WhyNot:
    """Return the configuration of AcquaTop, or why the query does not allow it."""
    sides = sides_of(query, options.match)
    if isinstance(sides, WhyNot):
        return sides
    if is_ranking_of_groups(query):
        return WhyNot("groups change as the window slides")
    score = _score(sides, options)
    if isinstance(score, WhyNot):
        return score
    config = joined_config(query, sides, score, options, score.streaming)
    names, functions = sides.stream.names, options.functions
    projected = projection(query, names, config, functions, sides.remote)
    scored = asked_score(query, sides.select, score, functions)
    return replace(config, projected=projected, scored=scored), service_of(sides, score, options)


@dataclass(frozen=True, slots=True)
class Sides:
    """The window and the SERVICE clause of a query, and the query without the clause."""

    select: tree.Select
    alone: tree.Query
    stream: StreamSide
    service: tree.Service

    @property
    def keys(self) -> tuple[str, ...]:
        """The variables of the window that every remote solution has: the join key."""
        sure = certain(self.service.group)
        return tuple(name for name in self.stream.names if name in sure)

    @property
    def remote(self) -> tuple[str, ...]:
        """The variables that come from the remote side alone."""
        return tuple(sorted(visible(self.service.group) - set(self.stream.names)))


@dataclass(frozen=True, slots=True)
class Scored:
    """F, and its variable on each side."""

    scoring: Scoring
    streaming: str | None
    remote: str | None


def sides_of(query: tree.Query, match: Match = "window") -> Sides | WhyNot:
    """Return both sides of a ranked query, or why a window and a SERVICE are not all it has."""
    select = query.form
    if not isinstance(select, tree.Select):
        return WhyNot("only a SELECT can rank")
    services = [e for e in select.where.elements if isinstance(e, tree.Service)]
    if len(services) != 1 or len(list(tree.find(query, tree.Service))) != 1:
        return WhyNot("a top-k operator needs exactly one SERVICE clause, beside the window")
    if not isinstance(services[0].name, tree.Iri):
        return WhyNot("SERVICE with a variable may ask several services")
    if any(isinstance(window.frame, tree.CountWindow) for window in query.windows):
        return WhyNot("remote values age with time, and the window counts elements")
    others = tuple(e for e in select.where.elements if e is not services[0])
    alone = replace(query, form=replace(select, where=tree.Group(others)))
    stream = stream_side(alone, match)
    if isinstance(stream, WhyNot):
        return stream
    if refusal := next(refusals(select), None):
        return refusal
    sides = Sides(select, alone, stream, services[0])
    return _unjoinable(sides) or sides


def _unjoinable(sides: Sides) -> WhyNot | None:
    keys = sides.keys
    if not keys:
        return WhyNot("SERVICE shares no variable with the window")
    shared = visible(sides.service.group) & set(sides.stream.names)
    if unsure := sorted(shared - set(keys)):
        return WhyNot(f"?{unsure[0]} is not in every remote solution, so it is no join key")
    filters = tree.find(tree.Group(sides.select.where.elements), tree.Filter)
    inside = {id(f) for f in tree.find(sides.service, tree.Filter)}
    for found in filters:
        if id(found) not in inside and named(found) & set(sides.remote):
            return WhyNot("a FILTER looks at remote values, which change")
    return None


def _score(sides: Sides, options: Options) -> Scored | WhyNot:
    found = scoring(order_expression(sides.select), options.functions, quotients=True)
    if found is None:
        return WhyNot("the score is more than arithmetic")
    names = variables(found)
    streaming = [name for name in names if name in sides.stream.names]
    remote = [name for name in names if name in sides.remote]
    if len(streaming) + len(remote) < len(names):
        return WhyNot("the score needs a variable that neither the window nor SERVICE has")
    if len(streaming) > 1 or len(remote) > 1:
        return WhyNot("the score needs more than one value of the window or of the remote side")
    return Scored(found, *streaming or (None,), *remote or (None,))


def asked_score(
    query: tree.Query, select: tree.Select, score: Scored, functions: Functions
) -> GeneralConfig | None:
    """Return what asks for the scores of objects; nothing if the score is one of their variables.

    The query has a variable in place of an aggregate.
    """
    expression = order_expression(select)
    if isinstance(expression, tree.Var):
        return None
    names = tuple(name for name in (score.streaming, score.remote) if name is not None)
    item = tree.SelectAs(expression, tree.Var(free_variable(query, "score")))
    return of_objects(query, (item,), functions, (), names)


def _proof(score: Scored, options: Options, variable: str | None) -> Proof:
    try:
        return prove(score.scoring, variable, declared=options.monotone)
    except ValueError as reason:
        raise BindingError(f"the score cannot be as it is declared: {reason}") from None


def service_of(
    sides: Sides, score: Scored, options: Options, *, one_of_key: bool = True
) -> ServicePlan:
    """Return how the SERVICE clause is answered; whether a key has one object at most."""
    policy = chosen_policy(options, DEFAULT_POLICY)
    instead = None
    if isinstance(policy, Voi):
        one_of_key &= options.arrivals != "all"
        if (why := _no_outlook(score, options, one_of_key=one_of_key)) is not None:
            policy, instead = policy.otherwise, f"{policy.name}: {why}"
    return service_plan(remote_pattern(sides.service, sides.keys), options, policy, instead)


def _no_outlook(score: Scored, options: Options, *, one_of_key: bool) -> str | None:
    """Say why it cannot be foreseen what objects score if remote values are others, if so."""
    if score.remote is None:
        return "the score needs no remote value"
    if not one_of_key:
        return "a key may have several objects"
    proof = _proof(score, options, score.remote)
    return proof.why if proof.direction is None else None


def joined_config(
    query: tree.Query, sides: Sides, score: Scored, options: Options, value: str | None
) -> JoinedConfig:
    """Return all of the configuration but what makes rows.

    `value` is the variable of the window that counts for the score.
    """
    # The text of the general path; its own policy does not matter here.
    neutral = replace(options, service_options=replace(options.service_options, policy=None))
    base, _ = served_path(query, neutral)
    number = tree.Literal("0", tree.XSD + "integer") if value is None else tree.Var(value)
    modifiers = sides.select.modifiers
    assert modifiers.limit is not None, "a ranking has a limit"  # noqa: S101
    offset = 0 if modifiers.offset is None else modifiers.offset.value
    return JoinedConfig(
        **{f.name: getattr(base, f.name) for f in fields(GeneralConfig)},
        matching=matching_of(sides.alone, sides.stream, number, options.functions),
        key=tuple(map(sides.stream.names.index, sides.keys)),
        scoring=score.scoring,
        streaming=score.streaming,
        remote=score.remote,
        descending=modifiers.order_by[0].descending,
        k=offset + modifiers.limit.value,
        offset=offset,
        n=options.service_options.n,
        arrivals=options.arrivals or "latest",
        is_judged=options.oracle,
        proof=_proof(score, options, score.streaming),
    )
