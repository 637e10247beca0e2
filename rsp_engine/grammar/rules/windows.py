"""Rules about windows: their declarations, sizes and units, and where they are read."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from rsp_engine.grammar.rules.finding import Finding, error, short, warning
from rsp_engine.grammar.tree import (
    CountWindow,
    DescribeForm,
    Duration,
    FromWindow,
    GraphPattern,
    Iri,
    Node,
    QueryUnit,
    ServicePattern,
    WindowPattern,
    find,
)
from rsp_engine.model.quantities import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "query_reads_a_stream",
    "window_has_a_size",
    "window_has_units",
    "window_is_declared",
    "window_is_not_remote",
    "window_is_used",
    "window_leaves_no_gap",
]


def window_is_declared(query: QueryUnit) -> Iterator[Finding]:
    """`WINDOW :w` needs a FROM NAMED WINDOW :w."""
    declared = {clause.window.value for clause in query.windows}
    streams = {clause.stream.value: clause.window for clause in query.windows}
    for pattern in find(query, WindowPattern):
        name = pattern.name
        if not isinstance(name, Iri) or name.value in declared:
            continue
        shown = short(query, name)
        if name.value in streams:
            window = short(query, streams[name.value])
            hint = f"write the window over it: WINDOW {window} {{ ... }}"
            yield error(f"{shown} is a stream, not a window", name, hint)
            continue
        # Compare prefixed names: full IRIs of one namespace are all similar.
        close = get_close_matches(shown, [short(query, w.window) for w in query.windows], n=1)
        hint = (
            f"did you mean {close[0]}?"
            if close
            else f"declare it: FROM NAMED WINDOW {shown} ON STREAM :s [RANGE 9m STEP 3m]"
        )
        yield error(f"window {shown} is not declared", name, hint)


def window_is_used(query: QueryUnit) -> Iterator[Finding]:
    """A window that no WINDOW clause reads is useless."""
    patterns: list[WindowPattern | GraphPattern] = [
        *find(query, WindowPattern),
        *find(query, GraphPattern),
    ]
    used = {_name(pattern) for pattern in patterns}
    windows = {clause.window.value for clause in query.windows}
    # `WINDOW ?w` reads them all; an undeclared name is reported by `window_is_declared`.
    if any(isinstance(p, WindowPattern) and _name(p) not in windows for p in patterns):
        return
    for clause in query.windows:
        if clause.window.value not in used:
            shown = short(query, clause.window)
            hint = f"read it with WINDOW {shown} {{ ... }}, or remove it"
            yield warning(f"window {shown} is declared but never read", clause.window, hint)


def _name(pattern: WindowPattern | GraphPattern) -> str | None:
    return pattern.name.value if isinstance(pattern.name, Iri) else None


def query_reads_a_stream(query: QueryUnit) -> Iterator[Finding]:
    """A query without a window is never evaluated."""
    pattern = next(find(query, WindowPattern), None)  # an undeclared window is an error of its own
    if not query.windows and pattern is None and not isinstance(query.form, DescribeForm):
        hint = "declare one: FROM NAMED WINDOW :w ON STREAM :s [RANGE 9m STEP 3m]"
        yield warning("the query has no window, so it reads no stream", query.form, hint)


def window_has_a_size(query: QueryUnit) -> Iterator[Finding]:
    """Sizes and steps are positive."""
    for clause in query.windows:
        for word, node, amount in _sizes(clause):
            if amount <= 0:
                yield error(f"{word} must be more than zero", node)


def _sizes(clause: FromWindow) -> Iterator[tuple[str, Node, int]]:
    frame = clause.frame
    if isinstance(frame, CountWindow):
        counts = ((frame.unit, frame.size), ("STEP", frame.step))
        yield from ((word, c, c.value) for word, c in counts if c is not None)
    else:
        durations = (("RANGE", frame.range), ("STEP", frame.step))
        yield from ((word, d, d.milliseconds) for word, d in durations if d is not None)


def window_leaves_no_gap(query: QueryUnit) -> Iterator[Finding]:
    """A step that is larger than the window leaves elements in no window."""
    for clause in query.windows:
        match list(_sizes(clause)):
            case [(word, size_node, size), (_, step_node, step)] if step > size > 0:
                if _is_bare(size_node) and not _is_bare(step_node):
                    unit = format_duration(step).lstrip("0123456789")
                    yield error(
                        f"{word} {size} has no unit, so it means {size} milliseconds, "
                        f"less than STEP {format_duration(step)}",
                        size_node,
                        f"write {word} {size}{unit}, or {word} {size}ms if you mean that",
                    )
                else:
                    yield warning(
                        f"STEP is larger than {word}: elements between two windows are never read",
                        step_node,
                    )
            case _:
                continue


def window_has_units(query: QueryUnit) -> Iterator[Finding]:
    """A bare number next to one with a unit is rarely meant as milliseconds."""
    for clause in query.windows:
        match list(_sizes(clause)):
            case [(_, size_node, size), (_, step_node, step)]:
                if _is_bare(step_node) and not _is_bare(size_node) and step > 0:
                    unit = format_duration(size).lstrip("0123456789")
                    hint = f"write STEP {step}{unit}, or STEP {step}ms if you mean that"
                    yield warning(f"STEP {step} has no unit: it is {step} ms", step_node, hint)
                elif _is_bare(size_node) and not _is_bare(step_node) and size >= step:
                    hint = f"write RANGE {size}ms, or another unit"
                    yield warning(f"RANGE {size} has no unit: it is {size} ms", size_node, hint)
            case _:
                continue


def _is_bare(node: Node) -> bool:
    return isinstance(node, Duration) and node.bare


def window_is_not_remote(query: QueryUnit) -> Iterator[Finding]:
    """SERVICE is evaluated by a remote endpoint, which has no windows."""
    for service in find(query, ServicePattern):
        for window in find(service, WindowPattern):
            hint = "close the SERVICE first; the two are joined by the variables they share"
            yield error("WINDOW is not allowed inside SERVICE", window, hint)
