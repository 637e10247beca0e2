"""The shape of ranked queries with SERVICE that AcquaTop evaluates, under a refresh budget.

The query is ranked as in `topk`, with one SERVICE clause next to the window. The clause has a
constant IRI and shares variables with the pattern: the join key. The score is arithmetic over at
most one variable of the window and one of the remote side, whose terms may be of any kind. A key
with several remote solutions has a row for each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.grammar import tree
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.scoring.scoring_function import Scoring, variables
from rsp_engine.operators.sparql.sparql_query import SparqlConfig
from rsp_engine.plan.monotone import prove
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.services import chosen_policy, service_plan
from rsp_engine.plan.shapes.service_rewrite import remote_pattern, service_path
from rsp_engine.plan.shapes.topk import (
    Functions,
    StreamSide,
    WhyNot,
    cutoff,
    free_variable,
    is_ranking_of_groups,
    matching_of,
    object_config,
    order_expression,
    projection,
    stream_side,
    topk_refusals,
)
from rsp_engine.plan.variables import certain_variables, named_variables, visible_variables
from rsp_engine.policies.voi import Voi

if TYPE_CHECKING:
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.operators.scoring.monotonicity import Proof
    from rsp_engine.plan.options import MatchRule, QueryOptions

__all__ = [
    "DEFAULT_LIST_POLICY",
    "ScoredSides",
    "Sides",
    "acquatop_config",
    "acquatop_path",
    "score_config",
    "service_of",
    "sides_of",
]

DEFAULT_LIST_POLICY = "AT-TSM"


def acquatop_path(
    query: tree.QueryUnit, options: QueryOptions
) -> tuple[AcquaTopConfig, ServicePlan] | WhyNot:
    """Return the configuration of AcquaTop and the plan of its SERVICE, or why there is none."""
    sides = sides_of(query, options.match)
    if isinstance(sides, WhyNot):
        return sides
    if is_ranking_of_groups(query):
        return WhyNot("groups change as the window slides")
    score = _score(sides, options)
    if isinstance(score, WhyNot):
        return score
    config = acquatop_config(query, sides, score, options, score.streaming)
    names, functions = sides.stream.names, options.functions
    projected = projection(query, names, config, functions, sides.remote)
    scored = score_config(query, sides.select, score, functions)
    return replace(config, projected=projected, scored=scored), service_of(sides, score, options)


@dataclass(frozen=True, slots=True)
class Sides:
    """The window and the SERVICE clause of a query, and the query without the clause."""

    select: tree.SelectForm
    alone: tree.QueryUnit
    stream: StreamSide
    service: tree.ServicePattern

    @property
    def keys(self) -> tuple[str, ...]:
        """The join key: the variables of the window that every remote solution binds."""
        sure = certain_variables(self.service.group)
        return tuple(name for name in self.stream.names if name in sure)

    @property
    def remote(self) -> tuple[str, ...]:
        """The variables that only the remote side binds."""
        return tuple(sorted(visible_variables(self.service.group) - set(self.stream.names)))


@dataclass(frozen=True, slots=True)
class ScoredSides:
    """The scoring function F, and its variable on each side."""

    scoring: Scoring
    streaming: str | None
    remote: str | None


def sides_of(query: tree.QueryUnit, match: MatchRule = "window") -> Sides | WhyNot:
    """Return both sides of a ranked query, or why it does not join one window with one SERVICE."""
    select = query.form
    if not isinstance(select, tree.SelectForm):
        return WhyNot("only a SELECT can rank")
    services = [e for e in select.where.elements if isinstance(e, tree.ServicePattern)]
    if len(services) != 1 or len(list(tree.find(query, tree.ServicePattern))) != 1:
        return WhyNot("a top-k operator needs exactly one SERVICE clause next to the window")
    if not isinstance(services[0].name, tree.Iri):
        return WhyNot("SERVICE with a variable may call several services")
    if any(isinstance(window.frame, tree.CountWindow) for window in query.windows):
        return WhyNot("remote values age with time, but the window counts elements")
    others = tuple(e for e in select.where.elements if e is not services[0])
    alone = replace(query, form=replace(select, where=tree.GroupPattern(others)))
    stream = stream_side(alone, match)
    if isinstance(stream, WhyNot):
        return stream
    if refusal := next(topk_refusals(select), None):
        return refusal
    sides = Sides(select, alone, stream, services[0])
    return _unjoinable(sides) or sides


def _unjoinable(sides: Sides) -> WhyNot | None:
    keys = sides.keys
    if not keys:
        return WhyNot("SERVICE shares no variable with the window")
    shared = visible_variables(sides.service.group) & set(sides.stream.names)
    if unsure := sorted(shared - set(keys)):
        return WhyNot(f"?{unsure[0]} is unbound in some remote solutions, so it is not a join key")
    filters = tree.find(tree.GroupPattern(sides.select.where.elements), tree.FilterClause)
    inside = {id(f) for f in tree.find(sides.service, tree.FilterClause)}
    for each in filters:
        if id(each) not in inside and named_variables(each) & set(sides.remote):
            return WhyNot("a FILTER uses remote values, which change")
    return None


def _score(sides: Sides, options: QueryOptions) -> ScoredSides | WhyNot:
    scoring = scoring_of(order_expression(sides.select), options.functions, quotients=True)
    if scoring is None:
        return WhyNot("the score uses more than arithmetic")
    names = variables(scoring)
    streaming = [name for name in names if name in sides.stream.names]
    remote = [name for name in names if name in sides.remote]
    if len(streaming) + len(remote) < len(names):
        return WhyNot("the score uses a variable that neither the window nor SERVICE binds")
    if len(streaming) > 1 or len(remote) > 1:
        return WhyNot("the score uses more than one value of the window or of SERVICE")
    return ScoredSides(scoring, *streaming or (None,), *remote or (None,))


def score_config(
    query: tree.QueryUnit, select: tree.SelectForm, score: ScoredSides, functions: Functions
) -> SparqlConfig | None:
    """Return a query for the scores of objects; None if the score is one of their variables.

    `query` and `select` have a variable in place of an aggregate.
    """
    expression = order_expression(select)
    if isinstance(expression, tree.Var):
        return None
    names = tuple(name for name in (score.streaming, score.remote) if name is not None)
    item = tree.SelectAs(expression, tree.Var(free_variable(query, "score")))
    return object_config(query, (item,), functions, (), names)


def _proof(score: ScoredSides, options: QueryOptions, variable: str | None) -> Proof:
    try:
        return prove(score.scoring, variable, declared=options.monotone)
    except ValueError as reason:
        raise BindingError(f"the declared directions of the score are wrong: {reason}") from None


def service_of(
    sides: Sides, score: ScoredSides, options: QueryOptions, *, one_of_key: bool = True
) -> ServicePlan:
    """Return the plan of the SERVICE clause; `one_of_key`: a join key has at most one object."""
    policy = chosen_policy(options, DEFAULT_LIST_POLICY)
    instead = None
    if isinstance(policy, Voi):
        one_of_key &= options.arrivals != "all"
        if (why := _no_outlook(score, options, one_of_key=one_of_key)) is not None:
            policy, instead = policy.otherwise, f"{policy.name}: {why}"
    return service_plan(remote_pattern(sides.service, sides.keys), options, policy, instead)


def _no_outlook(score: ScoredSides, options: QueryOptions, *, one_of_key: bool) -> str | None:
    """Return why VOI cannot predict scores for other remote values; None if it can."""
    if score.remote is None:
        return "the score uses no remote value"
    if not one_of_key:
        return "a key may have several objects"
    proof = _proof(score, options, score.remote)
    return proof.why if proof.direction is None else None


def acquatop_config(
    query: tree.QueryUnit,
    sides: Sides,
    score: ScoredSides,
    options: QueryOptions,
    value: str | None,
) -> AcquaTopConfig:
    """Return the configuration without the queries that compute rows and scores.

    `value` is the variable of the window that the score depends on.
    """
    # Only the text of the general path is used, so a policy that it refuses must not raise.
    neutral = replace(options, service_options=replace(options.service_options, policy=None))
    base, _ = service_path(query, neutral)
    number = tree.Literal("0", XSD + "integer") if value is None else tree.Var(value)
    k, offset = cutoff(sides.select)
    return AcquaTopConfig(
        **{f.name: getattr(base, f.name) for f in fields(SparqlConfig)},
        matching=matching_of(sides.alone, sides.stream, number, options.functions),
        key=tuple(map(sides.stream.names.index, sides.keys)),
        scoring=score.scoring,
        streaming=score.streaming,
        remote=score.remote,
        descending=sides.select.modifiers.order_by[0].descending,
        k=k,
        offset=offset,
        n=options.service_options.n,
        arrivals=options.arrivals or "latest",
        is_judged=options.oracle,
        proof=_proof(score, options, score.streaming),
    )
