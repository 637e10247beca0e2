"""Draws the architecture of the package from its imports: docs/pictures/architecture.svg.

    python scripts/architecture.py [FOLDER]

A row is a room, with its files and lines; a column is a room that it imports. A cell counts the
import statements between the two. The order of the rooms is that of the layers, which
`pyproject.toml` declares and import-linter checks, so every cell lies above the diagonal: imports
point down only.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PACKAGE = PROJECT / "rsp_engine"
CELL, LEFT, TOP = 46, 250, 110
STYLE = """text { font: 14px system-ui, sans-serif; fill: #1f2933; }
.small { font-size: 12px; fill: #52606d; } .count { text-anchor: middle; }
.title { font-size: 16px; font-weight: 600; }"""


def rooms() -> list[str]:
    """Return the rooms in the order of the layers, but for those whose place is kept free."""
    config = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each["id"] == "rooms"]
    names = [name.strip(" ()") for layer in layers for name in layer.split("|")]
    return [name for name in names if files_of(name)]


def files_of(room: str) -> list[Path]:
    """Return the files of a room, which is a folder or a file of its own."""
    alone = PACKAGE / f"{room}.py"
    return [alone] if alone.exists() else sorted((PACKAGE / room).rglob("*.py"))


def imports(room: str) -> Counter[str]:
    """Count the import statements of a room by the room that they import."""
    found: Counter[str] = Counter()
    for path in files_of(room):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rsp_engine."):
                found[str(node.module).split(".")[1]] += 1
    return found


def drawing() -> str:
    """Return the picture as an SVG document."""
    names = rooms()
    side = CELL * len(names)
    width, height = LEFT + side + 60, TOP + side + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="the imports between the rooms of the package"><style>{STYLE}</style>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text class="title" x="16" y="30">Imports between rooms</text>',
        '<text class="small" x="16" y="52">A row imports from its columns.</text>',
    ]
    for row, room in enumerate(names):
        parts += _row(names, row, imports(room))
    return "\n".join([*parts, "</svg>\n"])


def _row(names: list[str], row: int, counts: Counter[str]) -> list[str]:
    room, files = names[row], files_of(names[row])
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    x, y = LEFT + CELL * row, TOP + CELL * row
    size = f"{len(files)} files, {lines:,} lines" if len(files) > 1 else f"{lines:,} lines"
    parts = [
        f'<text x="16" y="{y + 21}">{room}</text>',
        f'<text class="small" x="16" y="{y + 37}">{size}</text>',
        f'<text transform="translate({x + 28} {TOP - 8}) rotate(-40)">{room}</text>',
        f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="#cbd2d9"/>',
    ]
    for column, other in enumerate(names):
        if other == room:
            continue
        at, count = LEFT + CELL * column, counts[other]
        depth = min(0.15 + count / 120, 0.9) if count else 0
        parts.append(
            f'<rect x="{at}" y="{y}" width="{CELL}" height="{CELL}" fill="#2b6cb0" '
            f'fill-opacity="{depth:.2f}" stroke="#e4e7eb"/>'
        )
        if count:
            color = ' style="fill: #fff"' if depth > 0.5 else ""
            middle = at + CELL // 2
            parts.append(f'<text class="count" x="{middle}" y="{y + 28}"{color}>{count}</text>')
    return parts


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else PROJECT / "docs" / "pictures"
    (folder / "architecture.svg").write_text(drawing(), encoding="utf-8")
