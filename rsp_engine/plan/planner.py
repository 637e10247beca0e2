"""From a query to its physical plan.

The planner asks each of `CHOICES` in turn whether it can run the query; the first that can, does.
The general path comes last and takes every query that is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import Diagnostic, PlanError
from rsp_engine.grammar import tree
from rsp_engine.grammar.definitions import expand
from rsp_engine.grammar.iris import is_absolute
from rsp_engine.model.windows import CountFrame, TimeFrame
from rsp_engine.plan.aggregated import aggregated_path
from rsp_engine.plan.choosing import chosen_ranker
from rsp_engine.plan.general import general_path
from rsp_engine.plan.incomplete import ALGORITHMS, incomplete_path, is_of_streams
from rsp_engine.plan.joined import joined_path
from rsp_engine.plan.options import OperatorName, Options
from rsp_engine.plan.pairs import is_of_pairs, pairs_path
from rsp_engine.plan.pane_wise import pane_wise_path
from rsp_engine.plan.physical import PhysicalPlan, StaticGraph, WindowScan
from rsp_engine.plan.ranked import WhyNot, is_ranking, is_ranking_of_groups, ranked_path
from rsp_engine.plan.refusals import graph_path, refusals, refused_by_oxigraph
from rsp_engine.plan.remote import DEFAULT_POLICY, has_service, served_path
from rsp_engine.plan.rules import rewrite
from rsp_engine.plan.services import chosen_policy
from rsp_engine.plan.translate import translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rsp_engine.operators.asking import GeneralConfig
    from rsp_engine.operators.incomplete.evaluation import Algorithm
    from rsp_engine.operators.ranked import RankedConfig, RankerName
    from rsp_engine.plan.joined import JoinedConfig
    from rsp_engine.plan.logical import Logical
    from rsp_engine.plan.services import ServicePlan

__all__ = ["CHOICES", "Plan", "plan"]


class Choice(NamedTuple):
    """An operator for a query, why it is the one, and how SERVICE clauses are answered."""

    operator: GeneralConfig
    why: str
    services: tuple[ServicePlan, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A query, what it means, and how it is run."""

    query: tree.Query
    logical: Logical
    physical: PhysicalPlan


def plan(query: tree.Query, text: str, source: str, options: Options | None = None) -> Plan:
    """Plan a query that keeps all rules of the language, or raise why there is no way to run it."""
    options = options or Options()
    query, wrong = expand(_with_absolute_graphs(query), options.definitions)
    if wrong:
        raise PlanError(wrong, text, source)
    wrong = [*_refused_operator(query, options), *refusals(query, options)]
    if wrong := wrong or list(_refused_oracle(query, options)):
        raise PlanError(wrong, text, source)
    logical = rewrite(translate(query))
    chosen_policy(options, DEFAULT_POLICY)  # a name that is none is refused, whatever the query
    operator, why, services = next(
        found for choice in CHOICES if (found := choice(query, logical, options)) is not None
    )
    if refusal := refused_by_oxigraph(operator):
        raise PlanError([Diagnostic("semantic", refusal, query.form.span)], text, source)
    name, feeds = _name(query)
    physical = PhysicalPlan(
        name=name,
        scans=tuple(_scan(window, options) for window in query.windows),
        graphs=tuple(_static_graphs(query, options)),
        operator=operator,
        why=why,
        r2s="RSTREAM" if query.register is None else query.register.r2s,
        report=options.report,
        bounds=options.bounds,
        feeds=feeds if operator.form == "CONSTRUCT" else None,
        services=services,
    )
    return Plan(query, logical, physical)


def by_oxigraph(query: tree.Query, _: Logical, options: Options) -> Choice:
    """Ask Oxigraph, over the whole content of the windows."""
    why = "the content of the windows is asked in full SPARQL 1.1, window by window"
    if is_ranking(query):
        why += f"; no top-k operator, since {_why_not_ranked(query, options)}"
    if has_service(query):
        config, services = served_path(query, options)
        return Choice(config, f"{why}; SERVICE is answered from a replica", services)
    return Choice(general_path(query, options.functions), why)


def by_aggregating(query: tree.Query, _: Logical, options: Options) -> Choice | None:
    """Rank groups by an aggregate that is put together from panes."""
    if options.operator != "auto" or not is_ranking_of_groups(query):
        return None
    why = "groups of solutions of one triple pattern, ranked by one aggregate"
    match aggregated_path(query, options):
        case WhyNot():
            return None
        case (config, service):
            return Choice(config, f"{why} and by one SERVICE", (service,))
        case config:
            return Choice(config, f"{why}: each pane is aggregated once")


def by_joining(query: tree.Query, _: Logical, options: Options) -> Choice | None:
    """Rank a join with remote data from a list that holds what can still reach an answer."""
    if options.operator != "auto" or not is_ranking(query) or not has_service(query):
        return None
    found = joined_path(query, options)
    if isinstance(found, WhyNot):
        return None
    config, service = found
    why = f"{_patterns(config)} joined with one SERVICE, ranked by one score over both"
    return Choice(config, why, (service,))


def _patterns(config: RankedConfig | JoinedConfig) -> str:
    assert config.matching is not None, "the planner says what to match"  # noqa: S101
    is_one = len(config.matching.patterns) == 1
    return "one triple pattern" if is_one else "triple patterns that one element matches"


def by_collecting(query: tree.Query, _: Logical, options: Options) -> Choice | None:
    """Rank objects whose attributes come in several streams, which do not wait for each other."""
    is_asked = options.operator == "auto" or options.operator in ALGORITHMS
    if not is_asked or not is_ranking(query) or has_service(query):
        return None
    config = incomplete_path(query, options)
    if isinstance(config, WhyNot):
        return None
    why = "attributes of the same key from several blocks, put together; what is missing is zero"
    return Choice(config, f"{why}: {_WHY_COLLECTED[config.algorithm]}")


_WHY_COLLECTED: dict[Algorithm, str] = {
    "EAA": "only instances of objects that can still reach an answer are kept",
    "SLA": "all is kept in sorted lists, and the threshold algorithm reads the best",
    "approximate": "only instances of objects that are likely to reach an answer are kept",
    "Oracle": "each window is added up anew",
}


def by_pairs(query: tree.Query, _: Logical, options: Options) -> Choice | None:
    """Rank pairs of objects from a skyband, which queries with the same score share."""
    if options.operator != "auto" or not is_ranking(query) or has_service(query):
        return None
    config = pairs_path(query, options)
    if isinstance(config, WhyNot):
        return None
    why = "two patterns over one window without a variable in common, ranked by one score over both"
    return Choice(config, f"{why}: only pairs that can still reach an answer are kept")


def by_ranking(query: tree.Query, _: Logical, options: Options) -> Choice | None:
    """Rank with a top-k operator, where a score is known on arrival."""
    if options.operator == "general" or not is_ranking(query):
        return None
    forced = _RANKERS.get(options.operator)
    config = ranked_path(query, options.functions, forced, options.match)
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


def _why_not_ranked(query: tree.Query, options: Options) -> str:
    if options.operator == "general":
        return "the general path was asked for"
    found = _ranking_path(query, options)
    return found.reason if isinstance(found, WhyNot) else ""


def _ranking_path(query: tree.Query, options: Options) -> object:
    """Return how a query is ranked by the operator for its shape, or why not."""
    if is_of_streams(query) and not has_service(query):
        return incomplete_path(query, options)
    if is_ranking_of_groups(query):
        return aggregated_path(query, options)
    if has_service(query):
        return joined_path(query, options)
    if is_of_pairs(query):
        return pairs_path(query, options)
    return ranked_path(query, options.functions, match=options.match)


def by_panes(query: tree.Query, _: Logical, options: Options) -> Choice | None:
    """Ask each pane once, where a solution never spans two of them."""
    config = pane_wise_path(query, options.functions)
    if config is None:
        return None
    return Choice(config, "one triple pattern over one window: each pane is asked once")


CHOICES: tuple[Callable[[tree.Query, Logical, Options], Choice | None], ...] = (
    by_aggregating,
    by_joining,
    by_collecting,
    by_pairs,
    by_ranking,
    by_panes,
    by_oxigraph,
)


def _name(query: tree.Query) -> tuple[str, str | None]:
    """Return the name of a query, and the IRI of the stream of its answers if it has one."""
    match query.register:
        case tree.Register(tree.Iri(value)):
            return value, value
        case tree.Register(tree.BareName(value)):
            return value, None
        case _:
            return "query", None


def _scan(clause: tree.FromWindow, options: Options) -> WindowScan:
    frame = clause.frame
    made: TimeFrame | CountFrame
    if isinstance(frame, tree.TimeWindow):
        step = frame.step or frame.range
        made = TimeFrame(frame.range.milliseconds, step.milliseconds, options.t0, options.bounds)
    else:
        made = CountFrame(frame.size.value, (frame.step or frame.size).value, frame.unit)
    return WindowScan(clause.window.value, clause.stream.value, made)


def _static_graphs(query: tree.Query, options: Options) -> Iterator[StaticGraph]:
    for clause in query.form.dataset:
        if not isinstance(clause, tree.FromWindow):
            name = clause.graph.value if isinstance(clause, tree.FromNamed) else None
            path = graph_path(clause.graph.value, options)
            assert path is not None, "graphs that are no files are refused"  # noqa: S101
            yield StaticGraph(name, path)


def _with_absolute_graphs(query: tree.Query) -> tree.Query:
    """Name graphs that are files beside the query by `file:` IRIs, since a store has no other."""
    named = {c.graph.value for c in query.form.dataset if isinstance(c, tree.From | tree.FromNamed)}
    relative = {name for name in named if not is_absolute(name)}

    def absolute(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.Iri) and node.value in relative:
            return tree.Iri(f"file:{node.value}", span=node.span)
        return node

    changed = tree.rewrite(query, absolute) if relative else query
    assert isinstance(changed, tree.Query), "rewriting keeps the kind of the root"  # noqa: S101
    return changed


def _refused_operator(query: tree.Query, options: Options) -> Iterator[Diagnostic]:
    """Yield why the operator that was asked for cannot run the query."""
    found: object = None
    if options.operator in ALGORITHMS and (
        is_of_streams(query) or options.operator not in _RANKERS
    ):
        found = incomplete_path(query, options)
    elif options.operator in _RANKERS:
        found = ranked_path(query, options.functions, match=options.match)
    if isinstance(found, WhyNot):
        message = f"the operator {options.operator} cannot run this query: {found.reason}"
        yield Diagnostic("semantic", message, query.form.span, "leave the choice to the planner")


def _refused_oracle(query: tree.Query, options: Options) -> Iterator[Diagnostic]:
    """Yield why an oracle that was asked for has nothing to judge."""
    if not options.oracle:
        return
    message = "only a ranked query with one SERVICE can be judged by an oracle"
    if not is_ranking(query) or not has_service(query):
        yield Diagnostic("semantic", message, query.form.span, "leave --oracle out")
    elif isinstance(found := _ranking_path(query, options), WhyNot):
        yield Diagnostic("semantic", f"{message}: {found.reason}", query.form.span)
