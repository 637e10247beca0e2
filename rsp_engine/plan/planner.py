"""From a query to its physical plan.

The planner asks each of `CHOICES` in turn whether it can run the query; the first that can, does.
The general path comes last and takes every query that is left.
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
from rsp_engine.plan.shapes.attributes import has_optional_windows
from rsp_engine.plan.shapes.group_topk import group_topk_path
from rsp_engine.plan.shapes.incomplete import ALGORITHMS, incomplete_path
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
    """An operator for a query, why it is the one, and how SERVICE clauses are answered.

    It reads the solutions of `blocks` in place of the triples of their windows.
    """

    operator: SparqlConfig
    why: str
    services: tuple[ServicePlan, ...] = ()
    blocks: ElementBlocks = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query, what it means, and how it is run."""

    query: tree.QueryUnit
    logical: Logical
    physical: PhysicalPlan
    warnings: tuple[Diagnostic, ...]


def plan(
    query: tree.QueryUnit, text: str, source: str, options: QueryOptions | None = None
) -> QueryPlan:
    """Plan a query that keeps all rules of the language, or raise why there is no way to run it."""
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
    chosen_policy(
        options, DEFAULT_WINDOW_POLICY
    )  # a name that is none is refused, whatever the query
    operator, why, services, blocks = next(
        found for choice in CHOICES if (found := choice(query, logical, options)) is not None
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


def by_oxigraph(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice:
    """Ask Oxigraph, over the whole content of the windows."""
    why = "the content of the windows is asked in full SPARQL 1.1, window by window"
    if is_ranking(query):
        why += f"; no top-k operator, since {_why_not_ranked(query, options)}"
    is_timed = has_time(query)
    meant = by_element(query, options, opens_nodes=is_timed, is_timed=is_timed)
    if meant.blocks:
        why += "; each WINDOW block is matched in one element at a time"
    if has_service(query):
        why += "; SERVICE is answered from a replica"
        text = service_path(query, options)[0].sparql
        served, services = service_path(query, options, meant)
        return Choice(replace(served, sparql=text), why, services, meant.blocks)
    text = sparql_path(query, options.functions).sparql
    config = sparql_path(meant.query, options.functions, ties(query, meant.nodes))
    return Choice(replace(config, sparql=text), why, (), meant.blocks)


def by_aggregating(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Rank groups by an aggregate that is put together from panes."""
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


def by_joining(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Rank a join with remote data from a list that holds what can still reach an answer."""
    if options.operator != "auto" or not is_ranking(query) or not has_service(query):
        return None
    found = acquatop_path(query, options)
    if isinstance(found, WhyNot):
        return None
    config, service = found
    why = f"{_patterns(config)} joined with one SERVICE, ranked by one score over both"
    return Choice(config, why, (service,))


def _patterns(config: TopkConfig | AcquaTopConfig) -> str:
    assert config.matching is not None, "the planner says what to match"  # noqa: S101
    is_one = len(config.matching.patterns) == 1
    return "one triple pattern" if is_one else "triple patterns that one element matches"


def by_collecting(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Rank objects whose attributes come in several streams, which do not wait for each other."""
    is_asked = options.operator == "auto" or options.operator in ALGORITHMS
    if not is_asked or not is_ranking(query) or has_service(query):
        return None
    meant = by_element(query, options, opens_nodes=True)
    config = incomplete_path(meant.query, options)
    if isinstance(config, WhyNot):
        return None
    why = "attributes of the same key from several blocks, put together; what is missing is zero"
    why += f": {_WHY_COLLECTED[config.algorithm]}"
    text = sparql_path(query, options.functions).sparql
    return Choice(replace(config, sparql=text), why, (), meant.blocks)


_WHY_COLLECTED: dict[Algorithm, str] = {
    "EAA": "only instances of objects that can still reach an answer are kept",
    "SLA": "all is kept in sorted lists, and the threshold algorithm reads the best",
    "approximate": "only instances of objects that are likely to reach an answer are kept",
    "Oracle": "each window is added up anew",
}


def by_pairs(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Rank pairs of objects from a skyband, which queries with the same score share."""
    if options.operator != "auto" or not is_ranking(query) or has_service(query):
        return None
    config = pairs_path(query, options)
    if isinstance(config, WhyNot):
        return None
    why = "two patterns over one window without a variable in common, ranked by one score over both"
    return Choice(config, f"{why}: only pairs that can still reach an answer are kept")


def by_ranking(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Rank with a top-k operator, where a score is known on arrival."""
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
_PARTITIONS = "the best of each partition of the window are kept, others looked at only if needed"
_SCANNED = "the best are kept, and the window is scanned when they run out"
_WHY: dict[RankerName, str] = {
    "MinTopk": "only solutions that can still reach an answer are kept",
    "PreTopk": "the best are predicted for each window to come",
    "Oracle": "each window is sorted anew",
    "SAP": _PARTITIONS,
    "SAP (dynamic)": _PARTITIONS,
    "SAP (equal)": _PARTITIONS,
    "k-skyband": "solutions stay until k better ones have come after them",
    "SMA": _SCANNED,
    "SMA (ring buffer)": _SCANNED,
}


def _why_not_ranked(query: tree.QueryUnit, options: QueryOptions) -> str:
    if options.operator == "general":
        return "the general path was asked for"
    found = _ranking_path(query, options)
    return found.reason if isinstance(found, WhyNot) else ""


def _ranking_path(query: tree.QueryUnit, options: QueryOptions) -> object:
    """Return how a query is ranked by the operator for its shape, or why not."""
    if has_optional_windows(query) and not has_service(query):
        return incomplete_path(query, options)
    if is_ranking_of_groups(query):
        return group_topk_path(query, options)
    if has_service(query):
        return acquatop_path(query, options)
    if is_of_pairs(query):
        return pairs_path(query, options)
    return topk_path(query, options.functions, match=options.match)


def by_panes(query: tree.QueryUnit, _: Logical, options: QueryOptions) -> Choice | None:
    """Ask each pane once, where a solution never spans two of them."""
    config = per_pane_path(query, options.functions)
    if config is None:
        return None
    return Choice(config, "one triple pattern over one window: each pane is asked once")


CHOICES: tuple[Callable[[tree.QueryUnit, Logical, QueryOptions], Choice | None], ...] = (
    by_aggregating,
    by_joining,
    by_collecting,
    by_pairs,
    by_ranking,
    by_panes,
    by_oxigraph,
)


def _name(query: tree.QueryUnit) -> tuple[str, str | None]:
    """Return the name of a query, and the IRI of the stream of its answers if it has one."""
    match query.register:
        case tree.Register(tree.Iri(value)):
            return value, value
        case tree.Register(tree.BareName(value)):
            return value, None
        case _:
            return "query", None


def _scan(clause: tree.FromWindow, options: QueryOptions, blocks: ElementBlocks) -> WindowScan:
    frame = clause.frame
    made: TimeFrame | CountFrame
    if isinstance(frame, tree.TimeWindow):
        step = frame.step or frame.range
        made = TimeFrame(frame.range.milliseconds, step.milliseconds, options.t0, options.bounds)
    else:
        made = CountFrame(frame.size.value, (frame.step or frame.size).value, frame.unit)
    name = clause.window.value
    return WindowScan(name, clause.stream.value, made, blocks.get(name, ()))


def _static_graphs(query: tree.QueryUnit, options: QueryOptions) -> Iterator[StaticGraph]:
    for clause in query.form.dataset:
        if not isinstance(clause, tree.FromWindow):
            iri = clause.graph.value
            path = graph_path(iri, options)
            assert path is not None, "graphs that are no files are refused"  # noqa: S101
            yield StaticGraph(iri if isinstance(clause, tree.FromNamed) else None, path, iri)


def _refused_operator(query: tree.QueryUnit, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why the operator that was asked for cannot run the query."""
    found: object = None
    if options.operator in ALGORITHMS and (
        has_optional_windows(query) or options.operator not in _RANKERS
    ):
        found = incomplete_path(query, options)
    elif options.operator in _RANKERS:
        found = topk_path(query, options.functions, match=options.match)
    if isinstance(found, WhyNot):
        message = f"the operator {options.operator} cannot run this query: {found.reason}"
        yield Diagnostic("semantic", message, query.form.span, "leave the choice to the planner")


def _refused_oracle(query: tree.QueryUnit, options: QueryOptions) -> Iterator[Diagnostic]:
    """Yield why an oracle that was asked for has nothing to judge."""
    if not options.oracle:
        return
    message = "only a ranked query with one SERVICE can be judged by an oracle"
    if not is_ranking(query) or not has_service(query):
        yield Diagnostic("semantic", message, query.form.span, "leave --oracle out")
    elif isinstance(found := _ranking_path(query, options), WhyNot):
        yield Diagnostic("semantic", f"{message}: {found.reason}", query.form.span)
