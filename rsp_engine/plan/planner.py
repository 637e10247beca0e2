"""The choice of a physical plan for a query.

The planner translates a query to its logical plan, and takes the first of `SHAPES` that the query
has. One of the last two accepts any query: the general path, with or without SERVICE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import Diagnostic, PlanError, Position, position
from rsp_engine.evaluators.physical_plan import PhysicalPlan, StaticGraph, WindowScan
from rsp_engine.grammar import tree
from rsp_engine.grammar.definitions import expand
from rsp_engine.grammar.iris import with_absolute_iris
from rsp_engine.lazy_registry import LazyRegistry, importer
from rsp_engine.model.windows import CountFrame, TimeFrame
from rsp_engine.plan.arrivals import refused_arrivals
from rsp_engine.plan.logical.query import logical_query
from rsp_engine.plan.logical.rules import apply_rules
from rsp_engine.plan.logical.translate import translate
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.services import chosen_policy, without_silent
from rsp_engine.plan.shapes.shape import Choice
from rsp_engine.plan.sparql.element_blocks import refused_blocks
from rsp_engine.plan.sparql.service_rewrite import DEFAULT_WINDOW_POLICY
from rsp_engine.plan.unsupported import graph_path, refused_by_oxigraph, unsupported_features

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.plan.logical.algebra import Logical
    from rsp_engine.plan.logical.query import LogicalQuery
    from rsp_engine.plan.shapes.shape import Shape

__all__ = ["SHAPES", "QueryPlan", "ShapeRefusal", "plan"]

SHAPES: Mapping[str, Shape] = LazyRegistry(
    {
        name: importer(f"rsp_engine.plan.shapes.{name}", f"{name.upper()}_SHAPE")
        for name in (
            "group_topk",
            "acquatop",
            "incomplete",
            "pairs",
            "topk",
            "per_pane",
            "column_join",
            "service",
            "sparql",
        )
    }
)
"""The shapes of queries, in the order in which the planner tries them: each when its turn comes."""


class ShapeRefusal(NamedTuple):
    """The name of a shape that a query does not have, the reason, and its place in the text."""

    shape: str
    reason: str
    at: Position


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query with its logical and physical plan, and the warnings to show to the user.

    `refusals` are those of the shapes that were tried before the one of the physical plan.
    """

    query: tree.QueryUnit
    whole: tree.QueryUnit
    """The query with the SILENT clauses that are not evaluated, as their services are not bound."""
    physical: PhysicalPlan
    warnings: tuple[Diagnostic, ...]
    refusals: tuple[ShapeRefusal, ...]

    @property
    def logical(self) -> Logical:
        """The logical plan, rewritten by rules. A run does not need it."""
        return apply_rules(translate(self.whole))


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
    whole = with_absolute_iris(query)
    query, warnings = without_silent(whole, options)
    to_plan = logical_query(query)
    if wrong := _refused(to_plan, options):
        raise PlanError(wrong, text, source)
    chosen_policy(options, DEFAULT_WINDOW_POLICY)  # refuses an unknown name, for any query
    choice, refusals = _choice(to_plan, text, options)
    if options.ranking.memory == "list":
        # Most runs keep all objects.
        from rsp_engine.plan.shapes.ranking_refusal import refused_memory

        reasons = {each.shape: each.reason for each in refusals}
        if reason := refused_memory(choice, reasons.get("acquatop")):
            at, hint = query.form.span, "remove --memory"
            message = f"--memory list cannot rank this query: {reason}"
            raise PlanError([Diagnostic("semantic", message, at, hint)], text, source)
    operator, why, services, blocks, _ = choice
    if refusal := refused_by_oxigraph(operator, chain.from_iterable(blocks.values())):
        raise PlanError([Diagnostic("semantic", refusal, query.form.span)], text, source)
    name, feeds = _name(query)
    scans = tuple(_scan(window, options, choice) for window in query.windows)
    physical = PhysicalPlan(
        name=name,
        scans=scans,
        graphs=tuple(_static_graphs(query, options)),
        operator=operator,
        why=why,
        r2s="RSTREAM" if query.register is None else query.register.r2s,
        report=options.windows.report,
        bounds=options.windows.bounds,
        feeds=feeds if operator.query.form == "CONSTRUCT" else None,
        services=tuple(_with_step(service, scans) for service in services),
    )
    return QueryPlan(query, whole, physical, warnings, refusals)


def _refused(query: LogicalQuery, options: QueryOptions) -> list[Diagnostic]:
    """Return why the engine cannot run a query, or not as the user asks for."""
    ranking, wrong = options.ranking, list[Diagnostic]()
    if ranking.operator != "auto":
        from rsp_engine.plan.shapes.ranking_refusal import refused_operator

        wrong += refused_operator(query, options)
    wrong += unsupported_features(query.unit, options)
    wrong += refused_arrivals(query, options)
    if ranking.match == "element":
        wrong += refused_blocks(query, options)
    if ranking.oracle and not wrong:
        from rsp_engine.plan.shapes.ranking_refusal import refused_oracle

        wrong += refused_oracle(query, options)
    return wrong


def _choice(
    query: LogicalQuery, text: str, options: QueryOptions
) -> tuple[Choice, tuple[ShapeRefusal, ...]]:
    """Return the choice of the first shape that a query has, and the refusals of those before."""
    refusals: list[ShapeRefusal] = []
    for shape in SHAPES.values():
        found = shape.recognise(query, options)
        if isinstance(found, Choice):
            return found, tuple(refusals)
        refusals.append(ShapeRefusal(shape.name, found.reason, position(text, found.span.start)))
    raise AssertionError("one of the last two shapes accepts any query")


def _name(query: tree.QueryUnit) -> tuple[str, str | None]:
    """Return the name of a query, and the IRI of the stream that its answers feed, if any."""
    match query.register:
        case tree.Register(tree.Iri(value)):
            return value, value
        case tree.Register(tree.BareName(value)):
            return value, None
        case _:
            return "query", None


def _scan(clause: tree.FromWindow, options: QueryOptions, choice: Choice) -> WindowScan:
    spec = clause.frame
    frame: TimeFrame | CountFrame
    if isinstance(spec, tree.TimeWindow):
        step = spec.step or spec.range
        frame = TimeFrame(
            spec.range.milliseconds,
            step.milliseconds,
            options.windows.t0,
            options.windows.bounds,
        )
    else:
        frame = CountFrame(spec.size.value, (spec.step or spec.size).value, spec.unit)
    name = clause.window.value
    blocks = choice.blocks.get(name, ())
    return WindowScan(name, clause.stream.value, frame, blocks, choice.selection)


def _with_step(service: ServicePlan, scans: Sequence[WindowScan]) -> ServicePlan:
    """Return the plan of a SERVICE clause with the time between evaluations, if windows have one.

    A window that is shorter than its STEP closes before the STEP has passed.
    """
    frames = (scan.frame for scan in scans)
    steps = [min(f.range, f.step) for f in frames if isinstance(f, TimeFrame)]
    return replace(service, step=min(steps)) if steps else service


def _static_graphs(query: tree.QueryUnit, options: QueryOptions) -> Iterator[StaticGraph]:
    for clause in query.form.dataset:
        if not isinstance(clause, tree.FromWindow):
            iri = clause.graph.value
            path = graph_path(iri, options)
            assert path is not None, "unsupported_features refuses a graph without a file"  # noqa: S101
            yield StaticGraph(iri if isinstance(clause, tree.FromNamed) else None, path, iri)
