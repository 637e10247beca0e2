"""A plan as a graph that `dot` and `svg` draw: boxes, and arrows in the direction of solutions.

The logical plan is a tree with the answer at its root. The physical plan leads from streams, static
graphs and services to the answer:

    stream -> window ----> operator -> answer
    service -> replica -/
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal

from rsp_engine.plan.explain.ranking import explain_ranking
from rsp_engine.plan.explain.services import service_summary
from rsp_engine.plan.explain.spark import work_on_spark
from rsp_engine.plan.explain.text import NodeWriter, operator_of, r2s_text, window_text
from rsp_engine.plan.logical import algebra as logical
from rsp_engine.plan.logical.algebra import inputs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rsp_engine.plan.logical.algebra import Logical
    from rsp_engine.plan.planner import QueryPlan

__all__ = ["Arrow", "Box", "BoxKind", "PlanGraph", "PlanPart", "plan_graph"]

BoxKind = Literal["stream", "remote", "static", "operator", "algebra", "answer"]
"""The kind of a box, which determines its colour."""

_WIDE, _WIDEST = 34, 52
"""The width in characters at which the lines of a logical and of a physical box wrap."""


@dataclass(frozen=True, slots=True)
class Box:
    """A step of a plan. Its name consists of letters and digits."""

    name: str
    kind: BoxKind
    title: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arrow:
    """Solutions flow from one box to another."""

    start: str
    end: str


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One of the two plans; the first box is its root."""

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """Both plans of a query."""

    query: str
    parts: tuple[PlanPart, PlanPart]


def plan_graph(plan: QueryPlan) -> PlanGraph:
    """Return the graph of a plan."""
    describe = NodeWriter(plan.query.prefixes)
    return PlanGraph(
        describe.iri(plan.physical.name),
        (_logical(plan.logical, describe), _physical(plan, describe)),
    )


def _logical(root: Logical, describe: NodeWriter) -> PlanPart:
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    numbers = count()

    def add(node: Logical) -> str:
        name = f"l{next(numbers)}"
        first, *details = describe.lines(node)
        title, _, detail = first.partition(" ")
        lines = tuple(_wrapped(filter(None, [detail, *details]), _WIDE))
        boxes.append(Box(name, _kind(node), title, lines))
        arrows.extend(Arrow(add(child), name) for child in inputs_of(node))
        return name

    add(root)
    return PlanPart("logical plan", tuple(boxes), tuple(arrows))


def _kind(node: Logical) -> BoxKind:
    match node:
        case logical.Window():
            return "stream"
        case logical.Service():
            return "remote"
        case logical.Graph():
            return "static"
        case logical.Stream():
            return "answer"
        case _:
            return "algebra"


def _physical(plan: QueryPlan, describe: NodeWriter) -> PlanPart:
    physical = plan.physical
    feeds = [] if physical.feeds is None else [f"feeds stream {describe.iri(physical.feeds)}"]
    output = r2s_text(physical.r2s).partition(": ")[2]
    lines = tuple(_wrapped(_operator_lines(plan), _WIDEST))
    boxes = [
        Box("answer", "answer", physical.r2s, (output, *feeds)),
        Box("operator", "operator", operator_of(plan)[0], lines),
    ]
    arrows = [Arrow("operator", "answer")]
    streams: dict[str, str] = {}
    for number, scan in enumerate(physical.scans):
        name = f"w{number}"
        size = window_text(scan).split(", ", 1)
        boxes.append(Box(name, "stream", f"window {describe.iri(scan.window)}", tuple(size)))
        arrows.append(Arrow(name, "operator"))
        stream = streams.setdefault(scan.stream, f"s{len(streams)}")
        arrows.append(Arrow(stream, name))
    for number, service in enumerate(physical.services):
        iri = describe.iri(service.pattern.service)
        lines = tuple(_wrapped(service_summary(service), _WIDE))
        boxes.append(Box(f"r{number}", "remote", f"replica of {iri}", lines))
        boxes.append(Box(f"e{number}", "remote", f"SERVICE {iri}"))
        arrows += [Arrow(f"r{number}", "operator"), Arrow(f"e{number}", f"r{number}")]
    for number, graph in enumerate(physical.graphs):
        title = "default graph" if graph.name is None else f"graph {describe.iri(graph.name)}"
        boxes.append(Box(f"g{number}", "static", title, (str(graph.path), "read once")))
        arrows.append(Arrow(f"g{number}", "operator"))
    boxes += [Box(n, "stream", f"stream {describe.iri(iri)}") for iri, n in streams.items()]
    return PlanPart("physical plan", tuple(boxes), tuple(arrows))


def _operator_lines(plan: QueryPlan) -> Iterator[str]:
    """Yield what the operator keeps, why it was chosen, and the facts about it."""
    yield operator_of(plan)[1]
    yield f"why: {plan.physical.why}"
    if (ranked := explain_ranking(plan.physical)) is not None:
        yield from (f"{label}: {fact}" for label, fact in ranked.facts.items())
    work = work_on_spark(plan.physical)
    yield f"on Spark: executors {work.executors}"
    yield f"the driver {work.driver}"


def _wrapped(texts: Iterable[str], width: int) -> Iterator[str]:
    """Yield the wrapped lines of texts, with continuation lines indented."""
    for text in texts:
        yield from textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False)
