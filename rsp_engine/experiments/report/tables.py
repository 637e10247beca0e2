"""The tables of the report, as HTML."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from rsp_engine.experiments.datasets.profile import (
    INVOCATIONS,
    PAIRS,
    RESULTS,
    TABLE_3,
    changes,
    mentions,
    spread_of,
    summary_of,
)
from rsp_engine.experiments.report.claims import leaders, where
from rsp_engine.experiments.report.figures import MEASURE_LABELS, Bars, Curves, Lines
from rsp_engine.experiments.report.improvement import EXPERIMENTS, TABLE_6, improvements
from rsp_engine.experiments.report.measured import BOTH
from rsp_engine.experiments.report.reasons import reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rsp_engine.experiments.datasets.dataset import Dataset
    from rsp_engine.experiments.replay import Compared
    from rsp_engine.experiments.report.claims import Claim, ClaimVerdict
    from rsp_engine.experiments.report.figures import Figure
    from rsp_engine.experiments.report.measured import Measure, Measured

__all__ = [
    "changes_table",
    "displayed_verdicts",
    "html_table",
    "leaders_table",
    "mentions_table",
    "numbers_table",
    "reasons_list",
    "replay_table",
    "table_6",
    "verdicts_table",
]


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table that scrolls if it is wide; cells must be HTML already."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    name = f' class="{kind}"' if kind else ""
    return (
        f'<div class="wide"><table{name}><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def displayed_verdicts(verdicts: Sequence[ClaimVerdict]) -> list[tuple[ClaimVerdict, str]]:
    """Return the verdicts to display, each with the name of its grid.

    A claim about all experiments has one verdict for each source, so that it counts once.
    """
    displayed = []
    together: dict[tuple[Claim, str], list[ClaimVerdict]] = {}
    for verdict in verdicts:
        grid = verdict.measured
        if verdict.claim.varied is None:
            together.setdefault((verdict.claim, grid.source), []).append(verdict)
        else:
            displayed.append((verdict, f"{grid.results.manifest['suite']}, {grid.grid.name}"))
    for several in together.values():
        checks = tuple(check for verdict in several for check in verdict.checks)
        grids = f"{len(several)} grids" if len(several) > 1 else several[0].measured.results.name
        displayed.append((replace(several[0], checks=checks), grids))
    return displayed


def verdicts_table(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return Table 7: each claim, with its verdict in each grid."""
    badges = displayed_verdicts(verdicts)
    sources = sorted({verdict.measured.source for verdict in verdicts})
    rows = []
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        cells = [
            "".join(
                _badge(verdict, grid_name)
                for verdict, grid_name in badges
                if verdict.claim is claim and verdict.measured.source == source
            )
            or "–"
            for source in sources
        ]
        text = f"{escape(claim.text)} <small>({escape(claim.section)})</small>"
        rows.append((f"<b>{escape(claim.name)}</b>", text, *cells))
    heads = ("", "what the paper says", *(f"{source} data" for source in sources))
    return html_table(heads, rows, "verdicts")


def _badge(verdict: ClaimVerdict, grid_name: str) -> str:
    kind = verdict.outcome.replace(" ", "-")
    return (
        f'<div class="badge {kind}"><b>{verdict.outcome}</b> {verdict.tally}'
        f"<small> {escape(grid_name)}</small></div>"
    )


def reasons_list(verdicts: Iterable[ClaimVerdict]) -> str:
    """Return the reasons for which claims fail, each with the places and the numbers."""
    claims: dict[str, list[str]] = {}
    for verdict in verdicts:
        for reason, places in reasons(verdict).items():
            at = "; ".join(map(escape, places))
            grid = verdict.measured
            name = escape(f"{grid.results.name}, {grid.grid.name}")
            claim = f"<b>{escape(verdict.claim.name)}</b> {escape(verdict.claim.text)}"
            claims.setdefault(reason, []).append(f"<li>{claim} — <i>{name}</i>: {at}.</li>")
    return "".join(
        f'<div class="reason"><p>{escape(reason)}</p><details><summary>Where: {len(lines)} '
        f"{'claims' if len(lines) > 1 else 'claim'}</summary><ul>{''.join(lines)}</ul></details>"
        "</div>"
        for reason, lines in claims.items()
    )


def leaders_table(grid: Measured) -> str:
    """Return the policies that lead at each point, in both measures."""
    rows = []
    for point in grid.points:
        cells = [_names(leaders(grid, point, measure)) for measure in BOTH]
        rows.append((escape(where(grid, point)), *cells))
    return html_table(("", "leads in nDCG", "leads in precision"), rows, "leaders")


def _names(names: Sequence[str]) -> str:
    first, *others = map(escape, names)
    return f"<b>{first}</b>" + (f" <small>≈ {', '.join(others)}</small>" if others else "")


def numbers_table(figure: Figure) -> str:
    """Return the medians of a figure as a table that is folded at first."""
    parts = []
    for panel in figure.panels:
        match panel:
            case Lines():
                rows = [
                    (escape(name), *(f"{m.value:.1f}" for m in line))
                    for name, line in panel.lines.items()
                ]
                parts.append(f"<p>{escape(panel.labels.title)}</p>")
                parts.append(html_table((escape(panel.labels.x), *map(escape, panel.ticks)), rows))
            case Curves():
                rows = [(escape(name), f"{curve[-1]:.1f}") for name, curve in panel.curves.items()]
                parts.append(f"<p>{escape(panel.labels.title)}</p>")
                parts.append(html_table(("policy", "error in the end"), rows))
            case Bars():
                pass
    return f"<details><summary>The numbers</summary>{''.join(parts)}</details>" if parts else ""


def table_6(grids: Iterable[Measured], measure: Measure) -> str:
    """Return Table 6 for a measure: our improvements beside the published ones.

    The paper does not say which nDCG it uses, so its numbers are beside ours by either formula.
    """
    published: Measure = "precision" if measure == "precision" else "ndcg"
    rows = []
    for grid in grids:
        number = EXPERIMENTS[grid.varied]
        for compared, (most, least) in improvements(grid, measure).items():
            theirs = TABLE_6[number, compared, published]
            rows.append(
                (
                    f"{number} <small>{escape(grid.source)}, {escape(grid.grid.name)}</small>",
                    f"{compared[0]} <small>vs</small> {compared[1]}",
                    f"<b>{most:.1f}</b>",
                    f"{theirs.most:g}",
                    f"<b>{least:.1f}</b>",
                    f"{theirs.least:g}",
                )
            )
    heads = ("experiment", escape(MEASURE_LABELS[measure]), "max", "paper", "min", "paper")
    return html_table(heads, rows, "numbers")


def mentions_table(dataset: Dataset) -> str:
    """Return the mentions of a dataset beside the paper's."""
    counted = mentions(dataset)
    published = "/".join(f"{one:g}" for one in PAIRS)
    rows = []
    for label, counts, paper in (
        ("mentions, as the paper counts", counted.pairs, published),
        ("users", counted.users, f"about {RESULTS}"),
        ("mentions, every one", counted.whole, "–"),
    ):
        least, median, largest = spread_of(counts)
        ours = f"<b>{least:g}/{median:g}/{largest:g}</b>"
        rows.append((label, ours, f"{counts.mean():.1f}", paper))
    heads = ("in a window", "least/median/largest", "mean", "paper")
    return html_table(heads, rows, "numbers")


def changes_table(datasets: Mapping[int, Sequence[Dataset]]) -> str:
    """Return Table 3: the changes of each dataset beside the paper's."""
    rows = []
    for ch, made in datasets.items():
        if ch in TABLE_3:
            cells = (f"{cell:g}" for cell in TABLE_3[ch])
            rows.append((f"<b>DS-CH-{ch}</b>, paper", str(INVOCATIONS), *cells))
        for number, one in enumerate(made, 1):
            cells = (f"{cell:.2f}".rstrip("0").rstrip(".") for cell in summary_of(changes(one)))
            rows.append((f"DS-CH-{ch} {number}", str(len(one.invocations)), *cells))
    heads = ("dataset", "invocations", "mean", "median", "1st quartile", "3rd quartile")
    return html_table(heads, rows, "numbers")


def replay_table(rows: Iterable[Compared]) -> str:
    """Return the measures of the replay beside those of the authors' run."""
    heads = ("policy", "B", "nDCG", "authors", "nDCG by place", "authors", "precision", "authors")
    return html_table(heads, _replay_rows(rows), "numbers")


def _replay_rows(rows: Iterable[Compared]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        ours = row.ours.measures
        theirs = row.reference or (None, None, None)
        cells = []
        for own, other in zip((ours.ndcg, ours.ndcg_by_place, ours.precision), theirs, strict=True):
            cells += [f"<b>{own:.1f}</b>", "–" if other is None else f"{other:.1f}"]
        yield (escape(row.name), str(row.budget), *cells)
