"""Draws the pictures of the documents: a plan, and the live view in the middle of a run.

    python scripts/pictures.py [FOLDER]

What is drawn is what users see. The run is that of `rsp demo` over generated
mentions, with a recorded history as the remote side; the clock stands still, so that the same
version draws the same pictures.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.terminal_theme import TerminalTheme

from rsp_engine import Engine
from rsp_engine.cli.view_frame import Moment, frame
from rsp_engine.experiments.datasets.generator import generate
from rsp_engine.monitor.run_monitor import RunMonitor
from rsp_engine.plan.explain.svg import explain_svg

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.experiments.datasets.dataset import Dataset

PROJECT = Path(__file__).parents[1]
GROWING = PROJECT / "rsp_engine" / "experiments" / "growing_users.rspql"
PEOPLE = "http://example.org/people"
POSTS = "http://example.org/posts"
MENTIONED = """PREFIX schema: <https://schema.org/>
PREFIX : <http://example.org/>
REGISTER RSTREAM :MostMentioned AS
SELECT ?user (COUNT(?post) AS ?mentions)
FROM NAMED WINDOW :recent ON STREAM :posts [RANGE 100s STEP 60s]
WHERE { WINDOW :recent { ?post schema:mentions ?user } }
GROUP BY ?user
ORDER BY DESC(?mentions)
LIMIT 3
"""
START = 1_441_098_000_000
"""When the mentions begin: nine o'clock on the first of September 2015."""
ANSWERS = 2 * 64
"""So many answers of both queries have come when the picture is taken."""
SECONDS = 14.0

THEME = TerminalTheme(
    (22, 27, 34),
    (219, 226, 233),
    [
        *((72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34)),
        *((88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196)),
    ],
    [
        *((92, 101, 112), (255, 161, 152), (86, 211, 100), (227, 179, 65)),
        *((121, 192, 255), (210, 168, 255), (86, 212, 221), (240, 246, 252)),
    ],
)
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg"
  role="img" aria-label="the live view of a run">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 17px; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def mentions() -> Dataset:
    """Return who is mentioned when, and what is known of them."""
    return replace(generate(seed=1), start=START)


def growing() -> tuple[Engine, Query]:
    """Return an engine with the query of the pictures, under a budget."""
    engine = Engine(t0=START, policy="AT-TSM", budget=3)
    engine.service(PEOPLE, mentions().endpoint())
    return engine, engine.register(GROWING.read_text(encoding="utf-8"))


def explain_picture() -> str:
    """Return the picture of a plan."""
    return explain_svg(growing()[1])


def live_picture() -> str:
    """Return the picture of the live view."""
    engine, _ = growing()
    engine.register(MENTIONED)
    watch = RunMonitor()
    engine.watched_by(watch)
    with tempfile.TemporaryDirectory() as folder:
        posts = Path(folder) / "posts.nq"
        posts.write_text("".join(mentions().nquads()))
        engine.bind(POSTS, str(posts))
        answers = engine.run()
        for _ in islice(answers, ANSWERS):
            pass
        moment = Moment(SECONDS, watch.elements / SECONDS, height=60)
        return _svg(frame(watch, moment))


def _svg(shown: RenderableType) -> str:
    console = Console(
        record=True, width=86, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Padding(shown, (1, 1)))
    drawn = console.export_svg(title="rsp run", theme=THEME, code_format=SVG, unique_id="live")
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


PICTURES = {"explain.svg": explain_picture, "live.svg": live_picture}


def main() -> None:
    """Draw all pictures into a folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PROJECT / "docs" / "pictures"
    for name, draw in PICTURES.items():
        (folder / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
