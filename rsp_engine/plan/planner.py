"""The choice of a physical plan for a query.

The planner tries the functions in `CHOICES` in order and takes the first evaluator that accepts the
query. The general path comes last and accepts every query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import Diagnostic, PlanError
from rsp_engine.evaluators.physical_plan import PhysicalPlan, StaticGraph, WindowScan
from rsp_engine.grammar import tree
from rsp_engine.grammar.definitions import expand
from rsp_engine.model.windows import CountFrame, TimeFrame
from rsp_engine.plan.arrivals import has_time, refused_arrivals, ties
from rsp_engine.plan.logical.rules import apply_rules
from rsp_engine.plan.logical.translate import translate
from rsp_engine.plan.options import OperatorName, QueryOptions
from rsp_engine.plan.services import chosen_policy
from rsp_engine.plan.shapes.acquatop import acquatop_path
from rsp_engine.plan.shapes.group_topk import group_topk_path
from rsp_engine.plan.shapes.incomplete import (
    ALGORITHMS,
    has_optional_windows,
    incomplete_path,
)
from rsp_engine.plan.shapes.pairs import is_of_pairs, pairs_path
from rsp_engine.plan.shapes.per_pane import per_pane_path
from rsp_engine.plan.shapes.ranker_choice import chosen_ranker
from rsp_engine.plan.shapes.service_rewrite import DEFAULT_WINDOW_POLICY, has_service, service_path
from rsp_engine.plan.shapes.topk import WhyNot, is_ranking, is_ranking_of_groups, topk_path
from rsp_engine.plan.sparql.absolute_iris import with_absolute_iris
from rsp_engine.plan.sparql.element_blocks import by_element, refused_blocks
from rsp_engine.plan.sparql.general import sparql_path
from rsp_engine.plan.sparql.silent_services import without_silent
from rsp_engine.plan.unsupported import graph_path, refused_by_oxigraph, unsupported_features

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.evaluators.acquatop.config import AcquaTopConfig
    from rsp_engine.evaluators.incomplete import Algorithm
    from rsp_engine.evaluators.service.service_plan import ServicePlan
    from rsp_engine.evaluators.topk import TopkConfig
    from rsp_engine.operators.sparql.sparql_query import SparqlConfig
    from rsp_engine.operators.topk.rankers import RankerName
    from rsp_engine.plan.logical.algebra import Logical
    from rsp_engine.plan.sparql.element_blocks import ElementBlocks

__all__ = ["CHOICES", "QueryPlan", "plan"]


class Choice(NamedTuple):
    """The configuration of the chosen evaluator, the reason, and the plans of SERVICE clauses.

    For the windows in `blocks`, the evaluator reads solutions of the blocks instead of triples.
    """

    operator: SparqlConfig
    why: str
    services: tuple[ServicePlan, ...] = ()
    blocks: ElementBlocks = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query with its logical and physical plan, and the warnings to show to the user."""

    query: tree.QueryUnit
    logical: Logical
    physical: PhysicalPlan
    warnings: tuple[Diagnostic, ...]


def plan(
    query: tree.QueryUnit, text: str, source: str, options: QueryOptions | None = None
) -> QueryPlan:
    """Plan a query that passed the checks of the grammar.

    Raise `PlanError` with all reasons and their places if the engine cannot run the query, and
    `BindingError` if an option does not fit the query or names what does not exist.
    """
    options = options or QueryOptions()
    query, wrong = expand(query, options.definitions)
    if wrong:
        raise PlanError(wrong, text, source)
    query = with_absolute_iris(query)
    whole = query
    query, warnings = without_silent(query, options)
    wrong = [
        *_refused_operator(query, options),
        *unsupported_features(query, options),
        *refused_arrivals(query, options),
        *refused_blocks(query, options),
    ]
    if wrong := wrong or list(_refused_oracle(query, options)):
        raise PlanError(wrong, text, source)
    logical = apply_rules(translate(whole))
    chosen_policy(options, DEFAULT_WINDOW_POLICY)  # refuses an unknown name, for any query
    operator, why, services, blocks = next(
        chosen for choice in CHOICES if (chosen := choice(query, logical, options)) is not None
    )
    if refusal := refused_by_oxigraph(operator, chain.from_iterable(blocks.values())):
        raise PlanError([Diagnostic("semantic", refusal, query.form.span)], text, source)
    name, feeds = _name(query)
    physical = PhysicalPlan(
        name=name,
        scans=tuple(_scan(window, options, blocks) for window in query.windows),
        graphs=tuple(_static_graphs(query, options)),
        operator=operator,
        why=why,
        r2s="RSTREAM" if query.register is None else query.register.r2s,
        report=options.report,
        bounds=options.bounds,
        feeds=feeds if operator.form == "CONSTRUCT" else None,
        services=services,
    )
    return QueryPlan(query, logical, physical, warnings)


def sparql_choice(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice:
    """Choose `sparql`, the general path: Oxigraph evaluates the query over whole windows."""
    why = "full SPARQL 1.1 over the content of each window"
    if is_ranking(query):
        why += f"; no top-k operator, since {_why_not_ranked(query, options)}"
    is_timed = has_time(query)
    rewritten = by_element(query, options, opens_nodes=is_timed, is_timed=is_timed)
    if rewritten.blocks:
        why += "; each WINDOW block is matched within one element"
    if has_service(query):
        why += "; SERVICE is answered from a replica"
        text = service_path(query, options)[0].sparql
        served, services = service_path(query, options, rewritten)
        return Choice(replace(served, sparql=text), why, services, rewritten.blocks)
    text = sparql_path(query, options.functions).sparql
    config = sparql_path(rewritten.query, options.functions, ties(query, rewritten.nodes))
    return Choice(replace(config, sparql=text), why, (), rewritten.blocks)


def group_topk_choice(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Choose `group_topk`: it ranks groups by an aggregate that is combined from pane partials."""
    if options.operator != "auto" or not is_ranking_of_groups(query):
        return None
    why = "groups of solutions of one triple pattern, ranked by one aggregate"
    match group_topk_path(query, options):
        case WhyNot():
            return None
        case (config, service):
            return Choice(config, f"{why} and by one SERVICE", (service,))
        case config:
            return Choice(config, f"{why}: each pane is aggregated once")


def acquatop_choice(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Choose `acquatop`: it ranks the join of a window with one SERVICE under a refresh budget."""
    if options.operator != "auto" or not is_ranking(query) or not has_service(query):
        return None
    path = acquatop_path(query, options)
    if isinstance(path, WhyNot):
        return None
    config, service = path
    why = f"{_patterns(config)} joined with one SERVICE, ranked by one score over both"
    return Choice(config, why, (service,))


def _patterns(config: TopkConfig | AcquaTopConfig) -> str:
    assert config.matching is not None, "the planner sets the matching"  # noqa: S101
    is_one = len(config.matching.patterns) == 1
    return "one triple pattern" if is_one else "triple patterns that one element matches"


def incomplete_choice(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Choose `incomplete`: it ranks objects whose attributes arrive in several streams."""
    is_allowed = options.operator == "auto" or options.operator in ALGORITHMS
    if not is_allowed or not is_ranking(query) or has_service(query):
        return None
    rewritten = by_element(query, options, opens_nodes=True)
    config = incomplete_path(rewritten.query, options)
    if isinstance(config, WhyNot):
        return None
    why = "attributes of one key, combined from several blocks, with zero for a missing one"
    why += f": {_WHY_INCOMPLETE[config.algorithm]}"
    text = sparql_path(query, options.functions).sparql
    return Choice(replace(config, sparql=text), why, (), rewritten.blocks)


_WHY_INCOMPLETE: dict[Algorithm, str] = {
    "EAA": "it keeps only instances of objects that can still reach an answer",
    "SLA": "it keeps all instances in sorted lists, which the threshold algorithm reads",
    "approximate": "it keeps only instances of objects that are likely to reach an answer",
    "Oracle": "it recomputes each window",
}


def pairs_choice(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Choose `pairs`: it ranks pairs of objects with a skyband that queries share."""
    if options.operator != "auto" or not is_ranking(query) or has_service(query):
        return None
    config = pairs_path(query, options)
    if isinstance(config, WhyNot):
        return None
    why = "two patterns over one window that share no variable, ranked by one score over both"
    return Choice(config, f"{why}: it keeps only pairs that can still reach an answer")


def topk_choice(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Choose `topk`: it ranks solutions whose score is known on arrival with a top-k operator."""
    if options.operator == "general" or not is_ranking(query):
        return None
    forced = _RANKERS.get(options.operator)
    config = topk_path(query, options.functions, forced, options.match)
    if isinstance(config, WhyNot):
        return None
    why = f"{_patterns(config)} over one window, ranked by one score: {_WHY[config.ranker]}"
    if forced is None:
        why += f"; {chosen_ranker(config.slides, config.k).why}"
    return Choice(config, why)


_RANKERS: dict[OperatorName, RankerName] = {
    "mintopk": "MinTopk",
    "sap": "SAP",
    "sap-dynamic": "SAP (dynamic)",
    "sap-equal": "SAP (equal)",
    "pretopk": "PreTopk",
    "skyband": "k-skyband",
    "sma": "SMA",
    "sma-ring": "SMA (ring buffer)",
    "oracle": "Oracle",
}
_PARTITIONS = "it keeps the best of each partition, and reads the rest only if needed"
_SCANNED = "it keeps the best, and scans the window when they run out"
_WHY: dict[RankerName, str] = {
    "MinTopk": "it keeps only solutions that can still reach an answer",
    "PreTopk": "it predicts the best of each future window",
    "Oracle": "it sorts each window from scratch",
    "SAP": _PARTITIONS,
    "SAP (dynamic)": _PARTITIONS,
    "SAP (equal)": _PARTITIONS,
    "k-skyband": "it keeps a solution until k better ones have arrived after it",
    "SMA": _SCANNED,
    "SMA (ring buffer)": _SCANNED,
}


def _why_not_ranked(query: tree.QueryUnit, options: QueryOptions) -> str:
    if options.operator == "general":
        return "the options select the general path"
    path = _ranking_path(query, options)
    return path.reason if isinstance(path, WhyNot) else ""


def _ranking_path(query: tree.QueryUnit, options: QueryOptions) -> object:
    """Return the configuration of the operator for the shape of a ranked query, or why not."""
    if has_optional_windows(query) and not has_service(query):
        return incomplete_path(query, options)
    if is_ranking_of_groups(query):
        return group_topk_path(query, options)
    if has_service(query):
        return acquatop_path(query, options)
    if is_of_pairs(query):
        return pairs_path(query, options)
    return topk_path(query, options.functions, match=options.match)


def per_pane_choice(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Choose `per_pane`: it evaluates each pane once, as no solution spans two panes."""
    config = per_pane_path(query, options.functions)
    if config is None:
        return None
    return Choice(config, "one triple pattern over one window: each pane is evaluated once")


CHOICES: tuple[Callable[[tree.QueryUnit, Logical, QueryOptions], Choice | None], ...] = (
    group_topk_choice,
    acquatop_choice,
    incomplete_choice,
    pairs_choice,
    topk_choice,
    per_pane_choice,
    sparql_choice,
)


def _name(query: tree.QueryUnit) -> tuple[str, str | None]:
    """Return the name of a query, and the IRI of the stream that its answers feed, if any."""
    match query.register:
        case tree.Register(tree.Iri(value)):
            return value, value
        case tree.Register(tree.BareName(value)):
            return value, None
        case _:
            return "query", None


def _scan(clause: tree.FromWindow, options: QueryOptions, blocks: ElementBlocks) -> WindowScan:
    spec = clause.frame
    frame: TimeFrame | CountFrame
    if isinstance(spec, tree.TimeWindow):
        step = spec.step or spec.range
        frame = TimeFrame(spec.range.milliseconds, step.milliseconds, options.t0, options.bounds)
    else:
        frame = CountFrame(spec.size.value, (spec.step or spec.size).value, spec.unit)
    name = clause.window.value
    return WindowScan(name, clause.stream.value, frame, blocks.get(name, ()))


def _static_graphs(query: tree.QueryUnit, options: QueryOptions) -> Iterator[StaticGraph]:
    for clause in query.form.dataset:
        if not isinstance(clause, tree.FromWindow):
            iri = clause.graph.value
            path = graph_path(iri, options)
            assert path is not None, "unsupported_features refuses a graph without a file"  # noqa: S101
            yield StaticGraph(iri if isinstance(clause, tree.FromNamed) else None, path, iri)


def _refused_operator(query: tree.QueryUnit, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why the operator that the user chose cannot run the query."""
    path: object = None
    if options.operator in ALGORITHMS and (
        has_optional_windows(query) or options.operator not in _RANKERS
    ):
        path = incomplete_path(query, options)
    elif options.operator in _RANKERS:
        path = topk_path(query, options.functions, match=options.match)
    if isinstance(path, WhyNot):
        message = f"the operator {options.operator} cannot run this query: {path.reason}"
        yield Diagnostic("semantic", message, query.form.span, "leave the choice to the planner")


def _refused_oracle(query: tree.QueryUnit, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why an oracle cannot judge the answers of the query, if the user enables it."""
    if not options.oracle:
        return
    message = "--oracle needs a ranked query with one SERVICE"
    if not is_ranking(query) or not has_service(query):
        yield Diagnostic("semantic", message, query.form.span, "remove --oracle")
    elif isinstance(path := _ranking_path(query, options), WhyNot):
        yield Diagnostic("semantic", f"{message}: {path.reason}", query.form.span)
