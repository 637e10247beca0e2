"""The explanation of a plan as a Graphviz graph: `rsp explain --format dot QUERY | dot -Tsvg`."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rsp_engine.plan.explain.graph import plan_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.plan.explain.graph import Box, BoxKind, PlanPart
    from rsp_engine.plan.planner import QueryPlan

__all__ = ["FILLS", "LINES", "explain_dot"]

# Light fills with lines of the same hue, which colour-blind readers can distinguish.
FILLS: dict[BoxKind, str] = {
    "stream": "#e3f0fb",
    "remote": "#fdebd8",
    "static": "#f1ecf7",
    "operator": "#e2f3ec",
    "algebra": "#ffffff",
    "answer": "#fff7d6",
}
LINES: dict[BoxKind, str] = {
    "stream": "#0072b2",
    "remote": "#d55e00",
    "static": "#7b5ea7",
    "operator": "#009e73",
    "algebra": "#8a94a0",
    "answer": "#b8860b",
}


def explain_dot(plan: QueryPlan) -> str:
    """Return both plans in the DOT language, each as a cluster.

    Edges are drawn backwards, so that the answer is at the top, as in the text.
    """
    graph = plan_graph(plan)
    return "\n".join(
        [
            "digraph plan {",
            f"  graph [label={_quoted(f'query {graph.query}')}, labelloc=t, ordering=out,"
            ' fontname="Helvetica", fontsize=16, nodesep=0.35, ranksep=0.4, newrank=true]',
            '  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=11,'
            ' margin="0.16,0.09"]',
            '  edge [dir=back, color="#5b6673", arrowsize=0.7]',
            *(line for number, part in enumerate(graph.parts) for line in _part(number, part)),
            "}",
            "",
        ]
    )


def _part(number: int, part: PlanPart) -> Iterator[str]:
    yield f"  subgraph cluster_{number} {{"
    yield f'    graph [label={_quoted(part.title)}, style="rounded", color="#c9d1d9", fontsize=13]'
    for box in part.boxes:
        colours = f"fillcolor={_quoted(FILLS[box.kind])}, color={_quoted(LINES[box.kind])}"
        yield f"    {box.name} [label={_label(box)}, {colours}]"
    for arrow in part.arrows:
        yield f"    {arrow.end} -> {arrow.start}"
    yield "  }"


def _label(box: Box) -> str:
    """Return the label of a box: its title, with left-aligned lines below."""
    if not box.lines:
        return f"<<B>{escape(box.title)}</B>>"
    lines = [f"<B>{escape(box.title)}</B>", *map(_line, box.lines)]
    return "<" + "".join(f'{line}<BR ALIGN="LEFT"/>' for line in lines) + ">"


def _line(text: str) -> str:
    """Return a line of a label, with hard spaces for an indent, which Graphviz would drop."""
    rest = text.lstrip(" ")
    return "&#160;" * (len(text) - len(rest)) + escape(rest)


def _quoted(text: str) -> str:
    r"""Return a text in quotes; in a label, a backslash starts an escape sequence of its own.

    >>> print(_quoted('say "\\d"'))
    "say \"\\d\""
    """
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{text}"'
