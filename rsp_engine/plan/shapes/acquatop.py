"""The shape of ranked queries with SERVICE that AcquaTop evaluates, under a refresh budget.

The query is ranked as in `topk`, with one SERVICE clause next to the window. The clause has a
constant IRI and shares variables with the pattern: the join key. The score is arithmetic over at
most one variable of the window and one of the remote side, whose terms may be of any kind. A key
with several remote solutions has a row for each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import BindingError
from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
from rsp_engine.grammar import tree
from rsp_engine.model.terms.xsd import XSD
from rsp_engine.operators.scoring.scoring_function import Scoring, variables
from rsp_engine.plan.monotone import prove
from rsp_engine.plan.scoring import scoring_of
from rsp_engine.plan.services import chosen_policy, remote_pattern, service_plan
from rsp_engine.plan.shapes.ranking import (
    check_choice,
    check_ranking,
    cutoff,
    order_expression,
    pattern_words,
    stream_side,
)
from rsp_engine.plan.shapes.shape import Choice, NoMatchError, Shape, select_of
from rsp_engine.plan.sparql.object_texts import (
    free_variable,
    matching_of,
    object_config,
    projection,
)
from rsp_engine.plan.sparql.service_rewrite import service_path
from rsp_engine.plan.variables import certain_variables, named_variables, visible_variables
from rsp_engine.policies.voi import Voi

if TYPE_CHECKING:
    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.operators.scoring.monotonicity import Proof
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.plan.logical.algebra import Service
    from rsp_engine.plan.logical.query import LogicalQuery, SelectPlan
    from rsp_engine.plan.options import QueryOptions
    from rsp_engine.plan.shapes.ranking import StreamSide
    from rsp_engine.plan.sparql.object_texts import Functions

__all__ = [
    "ACQUATOP_SHAPE",
    "DEFAULT_LIST_POLICY",
    "ScoredSides",
    "Sides",
    "acquatop_plan",
    "joined_config",
    "score_config",
    "service_of",
    "sides_of",
]

DEFAULT_LIST_POLICY = "AT-TSM"


def _choose(query: LogicalQuery, options: QueryOptions) -> Choice:
    check_choice(query, options)
    if not query.services:
        raise NoMatchError("there is no SERVICE clause to join", query)
    config, service = acquatop_plan(query, options)
    patterns = pattern_words(config.matching)
    why = f"{patterns} joined with one SERVICE, ranked by one score over both"
    return Choice(config, why, (service,))


def acquatop_plan(query: LogicalQuery, options: QueryOptions) -> tuple[AcquaTopConfig, ServicePlan]:
    """Return the configuration of AcquaTop and the plan of its SERVICE; raise if it has none."""
    sides = sides_of(query, options)
    if sides.select.grouping is not None:
        raise NoMatchError("groups change as the window slides", sides.select.grouping)
    score = _score(sides, options)
    config = joined_config(sides, score, options, score.streaming)
    unit, names, functions = query.unit, sides.stream.names, options.functions
    projected = projection(unit, names, config.query, functions, sides.remote)
    scored = score_config(unit, order_expression(sides.select), score, functions)
    return replace(config, projected=projected, scored=scored), service_of(sides, score, options)


@dataclass(frozen=True, slots=True)
class Sides:
    """The window and the SERVICE clause of a query."""

    query: LogicalQuery
    select: SelectPlan
    stream: StreamSide
    service: Service

    @property
    def alone(self) -> tree.QueryUnit:
        """The text of the query without the clause."""
        form: Any = self.query.unit.form
        others = tuple(e for e in form.where.elements if e is not self.service.source)
        return replace(self.query.unit, form=replace(form, where=tree.GroupPattern(others)))

    @property
    def keys(self) -> tuple[str, ...]:
        """The join key: the variables of the window that every remote solution binds."""
        sure = certain_variables(self.service.input)
        return tuple(name for name in self.stream.names if name in sure)

    @property
    def remote(self) -> tuple[str, ...]:
        """The variables that only the remote side binds."""
        return tuple(sorted(visible_variables(self.service.input) - set(self.stream.names)))


@dataclass(frozen=True, slots=True)
class ScoredSides:
    """The scoring function F, and its variable on each side."""

    scoring: Scoring
    streaming: str | None
    remote: str | None


def sides_of(query: LogicalQuery, options: QueryOptions) -> Sides:
    """Return both sides of a ranked query; raise if it does not join a window with a SERVICE."""
    select = select_of(query)
    services = select.group.services
    if len(services) != 1 or len(query.services) != 1:
        reason = "a top-k operator needs exactly one SERVICE clause next to the window"
        raise NoMatchError(reason, query)
    [service] = services
    if not isinstance(service.name, tree.Iri):
        raise NoMatchError("SERVICE with a variable may call several services", service)
    for window in query.windows:
        if isinstance(window.frame, tree.CountWindow):
            reason = "remote values age with time, but the window counts elements"
            raise NoMatchError(reason, window)
    stream = stream_side(query, options.ranking.match, has_services=True)
    check_ranking(query)
    sides = Sides(query, select, stream, service)
    _check_join(sides)
    return sides


def _check_join(sides: Sides) -> None:
    """Raise if the window and the clause are not joined by a key, or filters read remote values."""
    keys = sides.keys
    if not keys:
        raise NoMatchError("SERVICE shares no variable with the window", sides.service)
    shared = visible_variables(sides.service.input) & set(sides.stream.names)
    if unsure := sorted(shared - set(keys)):
        reason = f"?{unsure[0]} is unbound in some remote solutions, so it is not a join key"
        raise NoMatchError(reason, sides.service)
    for condition in sides.stream.filters:
        if named_variables(condition) & set(sides.remote):
            raise NoMatchError("a FILTER uses remote values, which change", condition)


def _score(sides: Sides, options: QueryOptions) -> ScoredSides:
    condition = sides.select.order[0]
    scoring = scoring_of(order_expression(sides.select), options.functions, quotients=True)
    if scoring is None:
        raise NoMatchError("the score uses more than arithmetic", condition)
    names = variables(scoring)
    streaming = [name for name in names if name in sides.stream.names]
    remote = [name for name in names if name in sides.remote]
    if len(streaming) + len(remote) < len(names):
        reason = "the score uses a variable that neither the window nor SERVICE binds"
        raise NoMatchError(reason, condition)
    if len(streaming) > 1 or len(remote) > 1:
        reason = "the score uses more than one value of the window or of SERVICE"
        raise NoMatchError(reason, condition)
    return ScoredSides(scoring, *streaming or (None,), *remote or (None,))


def score_config(
    query: tree.QueryUnit, expression: tree.Expression, score: ScoredSides, functions: Functions
) -> SparqlConfig | None:
    """Return a query for the scores of objects; None if the score is one of their variables.

    The expression of the score has a variable in place of an aggregate.
    """
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
        one_of_key &= options.ranking.arrivals != "all"
        if (why := _no_outlook(score, options, one_of_key=one_of_key)) is not None:
            policy, instead = policy.otherwise, f"{policy.name}: {why}"
    clause: Any = sides.service.source
    return service_plan(remote_pattern(clause, sides.keys), options, policy, instead)


def _no_outlook(score: ScoredSides, options: QueryOptions, *, one_of_key: bool) -> str | None:
    """Return why VOI cannot predict scores for other remote values; None if it can."""
    if score.remote is None:
        return "the score uses no remote value"
    if not one_of_key:
        return "a key may have several objects"
    proof = _proof(score, options, score.remote)
    return proof.why if proof.direction is None else None


def joined_config(
    sides: Sides, score: ScoredSides, options: QueryOptions, value: str | None
) -> AcquaTopConfig:
    """Return the configuration without the queries that compute rows and scores.

    `value` is the variable of the window that the score depends on.
    """
    # Only the text of the general path is used, so a policy that it refuses must not raise.
    neutral = replace(options, services=replace(options.services, policy=None))
    base, _ = service_path(sides.query, neutral)
    number = tree.Literal("0", XSD + "integer") if value is None else tree.Var(value)
    k, offset = cutoff(sides.select)
    return AcquaTopConfig(
        query=base.query,
        matching=matching_of(sides.alone, sides.stream, number, options.functions),
        key=tuple(map(sides.stream.names.index, sides.keys)),
        scoring=score.scoring,
        streaming=score.streaming,
        remote=score.remote,
        descending=sides.select.order[0].descending,
        k=k,
        offset=offset,
        n=options.services.n,
        arrivals=options.ranking.arrivals or "latest",
        is_judged=options.ranking.oracle,
        proof=_proof(score, options, score.streaming),
        memory=options.ranking.memory,
    )


ACQUATOP_SHAPE = Shape("acquatop", _choose)
