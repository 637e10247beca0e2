"""Notebooks: their cells are executed without Jupyter, and what they show is compared.

python -m tests.notebooks FILE    executes a notebook and stores what its cells show
"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

Cells = list[dict[str, Any]]
Outputs = list[dict[str, Any]]


def executed(cells: Cells, folder: Path) -> list[Outputs]:
    """Execute the code of cells in a folder; return what each shows."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with chdir(folder):
        return [
            shown("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"
        ]


def shown(source: str, names: dict[str, Any]) -> Outputs:
    """Return what a cell prints, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - it is our own
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    outputs: Outputs = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(text)})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": lines(value._repr_html_()), "text/plain": [type(value).__name__]}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    return outputs


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    path = Path(sys.argv[1]).resolve()
    notebook = json.loads(path.read_text(encoding="utf-8"))
    found = iter(executed(notebook["cells"], path.parent))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = next(found)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
