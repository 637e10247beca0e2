"""A frame of the live view: a panel for each query, and a line about the input."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rsp_engine.model.answers import Boolean, Graph, Solutions
from rsp_engine.model.display import (
    TermFormatter,
    format_age,
    format_instant,
    format_size,
    format_window,
    is_measure,
    printable,
)
from rsp_engine.model.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from rich.console import RenderableType

    from rsp_engine.model.answers import Answer, Row
    from rsp_engine.monitor.run_monitor import Extent, QueryStatistics, RunMonitor

__all__ = ["Moment", "frame", "identities", "moves"]

_AROUND = 7
"""How many lines of a panel are not rows."""


class Moment(NamedTuple):
    """What a frame needs in addition to the monitor: the time, the throughput and the terminal."""

    seconds: float
    """Since the run began."""
    per_second: float
    """The throughput, in elements a second."""
    height: int
    ascii_only: bool = False


def frame(watch: RunMonitor, moment: Moment, hide: Callable[[str], str] = str) -> RenderableType:
    """Draw a frame; `hide` removes secrets from names."""
    queries = watch.queries
    if not queries:
        return Text("starting", style="dim")
    room = max(1, (moment.height - 4) // len(queries) - _AROUND)
    marks = watch.watermarks()
    panels = [
        _panel(seen, hide(name), marks.get(name, float("-inf")), room, moment)
        for name, seen in queries.items()
    ]
    return Group(*panels, *_input(watch, moment))


def _panel(seen: QueryStatistics, name: str, watermark: float, room: int, moment: Moment) -> Panel:
    terms = TermFormatter(seen.info.prefixes)
    title = Text(terms.iri(name), style="bold bright_white")
    parts: list[RenderableType]
    if seen.latest is None:
        parts = [Text("no window has closed yet", style="dim")]
    else:
        answer, before = seen.latest
        title = Text.assemble(title, (_fit(f"  {format_window(answer.window)}", moment), "cyan"))
        is_whole = seen.info.r2s == "RSTREAM"
        parts = [_content(answer, before if is_whole else None, terms, room, moment, is_whole)]
        if seen.info.policies:
            parts += [Text(""), _remote(seen, answer)]
    status = _fit(
        f"watermark {format_instant(watermark)} · {quantity(seen.windows, 'window')}", moment
    )
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        subtitle=Text(status, style="white"),
        subtitle_align="right",
        box=box.ASCII if moment.ascii_only else box.ROUNDED,
        border_style="bright_black",
        padding=(1, 2, 0, 2),
    )


def _fit(text: str, moment: Moment) -> str:
    """Return a text of ours with signs that the terminal has."""
    return text.translate({ord("–"): "-", ord("·"): "-"}) if moment.ascii_only else text


def _content(
    answer: Answer,
    before: Answer | None,
    terms: TermFormatter,
    room: int,
    moment: Moment,
    is_whole: bool,
) -> RenderableType:
    match answer.content:
        case Solutions() as solutions:
            moved = moves(answer, before) if solutions.ranked and is_whole else None
            return _rows(solutions, moved, terms, room, moment, is_first=before is None)
        case Graph(triples):
            lines = [
                Text(f"{terms(t.subject)} {terms(t.predicate)} {terms(t.object)}", no_wrap=True)
                for t in triples[:room]
                if not hasattr(t.subject, "subject") and not hasattr(t.object, "subject")
            ]
            return _cut(Group(*lines), len(triples), room, "triples")
        case Boolean(value):
            text = "nothing new" if value is None else "true" if value else "false"
            return Text(text, style="bold green" if value else "bold")


def _rows(
    content: Solutions,
    moved: list[int | None] | None,
    terms: TermFormatter,
    room: int,
    moment: Moment,
    *,
    is_first: bool,
) -> RenderableType:
    rows = content.rows
    if not rows:
        return Text("no rows", style="dim")
    names = content.variables
    shows_score = content.ranked and not any(_is_score(rows, name) for name in names)
    has_age = any(row.age is not None for row in rows)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    if content.ranked:
        table.add_column("#", justify="right", style="bold", no_wrap=True)
    if moved is not None:
        table.add_column("", justify="left", no_wrap=True, min_width=3)
    for name in names:
        is_number = all(is_measure(row.bindings[name]) for row in rows if name in row.bindings)
        table.add_column(
            printable(name), justify="right" if is_number else "left", no_wrap=True,
            overflow="ellipsis",
        )  # fmt: skip
    if shows_score:
        table.add_column("score", justify="right", no_wrap=True, style="bold")
    if has_age:
        table.add_column("age", justify="right", no_wrap=True)
    for index, row in enumerate(rows[:room]):
        cells: list[Text] = []
        if content.ranked:
            cells.append(Text(str(row.rank or index + 1)))
        if moved is not None:
            cells.append(Text("") if is_first else _move(moved[index], moment.ascii_only))
        cells += [Text(terms(row.bindings[n]) if n in row.bindings else "") for n in names]
        if shows_score:
            cells.append(Text("" if row.score is None else f"{row.score:,.6g}"))
        if has_age:
            cells.append(_age(row))
        table.add_row(*cells)
    return _cut(table, len(rows), room, "rows")


def _is_score(rows: tuple[Row, ...], name: str) -> bool:
    """Return whether a variable is the score in every row."""
    for row in rows:
        term = row.bindings.get(name)
        try:
            if row.score is None or term is None or float(term.value) != row.score:
                return False
        except ValueError:
            return False
    return True


def _cut(shown: RenderableType, count: int, room: int, what: str) -> RenderableType:
    if count <= room:
        return shown
    return Group(shown, Text(f"and {count - room:,} more {what}", style="dim"))


def _move(ranks: int | None, ascii_only: bool) -> Text:
    if ranks is None:
        return Text("new", style="bold green")
    if ranks > 0:
        return Text(f"{'^' if ascii_only else '▲'}{ranks}", style="green")
    if ranks < 0:
        return Text(f"{'v' if ascii_only else '▼'}{-ranks}", style="red")
    return Text("=" if ascii_only else "·", style="dim")


def _age(row: Row) -> Text:
    if row.age is None:
        return Text("")
    return Text(format_age(row.age), style="green" if row.age <= 0 else "yellow")


def _remote(seen: QueryStatistics, answer: Answer) -> RenderableType:
    """Draw the budget that an answer took, its staleness and its quality."""
    info, stats = seen.info, answer.stats
    spent = stats.get("budget_spent", 0)
    policies = ", ".join(dict.fromkeys(info.policies.values()))
    of = f"{spent:,}, no limit" if info.budget is None else f"{spent:,} of {info.budget:,}"
    line = Text.assemble(
        (f"{printable(policies)}  ", "bold"),
        ("budget ", "dim"), of,
        ("  in all ", "dim"), f"{seen.budget_spent:,}",
        ("  stale ", "dim"), f"{stats.get('stale', 0):,}",
        ("  cold ", "dim"), f"{stats.get('cold_misses', 0):,}",
    )  # fmt: skip
    if "oldest_ms" in stats:
        line.append("  oldest ", style="dim").append(format_age(stats["oldest_ms"]))
    if faults := sum(seen.faults.values()):
        line.append(f"  {quantity(faults, 'fault')}", style="red")
    if stats.get("exact"):
        line.append("  exact", style="green")
    if "ndcg" in stats:
        line.append("  nDCG ", style="dim").append(f"{stats['ndcg']:.2f}")
    return line


def _input(watch: RunMonitor, moment: Moment) -> list[RenderableType]:
    """Draw the counts of the input, and a bar if its size is known."""
    dead = watch.dead
    late, others = watch.late, sum(dead.values()) - watch.late
    line = Text.assemble(
        ("  elements ", "dim"), f"{watch.elements:,}",
        ("  a second ", "dim"), f"{moment.per_second:,.0f}",
        ("  triples ", "dim"), f"{watch.triples:,}",
        ("  late ", "dim"), (f"{late:,}", "red" if late else ""),
        ("  dead letters ", "dim"), (f"{others:,}", "red" if others else ""),
    )  # fmt: skip
    minutes, seconds = divmod(int(moment.seconds), 60)
    line.append("  time ", style="dim").append(f"{minutes}:{seconds:02}")
    extent = watch.extent()
    return [line] if extent is None else [line, _bar(extent)]


def _bar(extent: Extent) -> RenderableType:
    whole = max(extent.whole, 1)
    done = min(extent.done, whole)
    table = Table.grid(padding=(0, 1))
    text = f"{100 * done / whole:3.0f} %"
    if extent.unit == "bytes":
        text += f"  {format_size(done)} of {format_size(extent.whole)}"
    elif extent.unit == "files":
        text += f"  {done:,} of {quantity(extent.whole, 'file')}"
    bar = ProgressBar(
        total=whole, completed=done, width=40, complete_style="green", finished_style="green"
    )
    table.add_row(Text(" "), bar, Text(text, style="dim"))
    return table


def moves(answer: Answer, before: Answer | None) -> list[int | None]:
    """Return for each row how many ranks it has risen, or None if it is new.

    >>> from pyoxigraph import Literal, NamedNode
    >>> from rsp_engine.model.answers import Answer, Interval, Row
    >>> def answer(*names):
    ...     user = [NamedNode(f"http://e/{name}") for name in names]
    ...     rows = [Row({"user": u, "n": Literal(9 - i)}, i + 1) for i, u in enumerate(user)]
    ...     return Answer("q", Interval(0, 1), Solutions(("user", "n"), tuple(rows), True), {})
    >>> moves(answer("a", "b", "c"), answer("b", "a", "d"))
    [1, -1, None]
    """
    previous = {} if before is None else dict(_ranks(before))
    return [None if key not in previous else previous[key] - rank for key, rank in _ranks(answer)]


def _ranks(answer: Answer) -> list[tuple[Hashable, int]]:
    content = answer.content
    if not isinstance(content, Solutions):
        return []
    ranks = (row.rank or number for number, row in enumerate(content.rows, 1))
    return list(zip(identities(content), ranks, strict=True))


def identities(content: Solutions) -> list[Hashable]:
    """Return the identity of each row: its terms without numbers and times.

    If these do not distinguish the rows, all terms do.
    """
    names = [_names(row) for row in content.rows]
    if len(set(names)) == len(names) and all(names):
        return list(names)
    return [frozenset(row.bindings.items()) for row in content.rows]


def _names(row: Row) -> frozenset[tuple[str, Hashable]]:
    return frozenset((name, term) for name, term in row.bindings.items() if not is_measure(term))
