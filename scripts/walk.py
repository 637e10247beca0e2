"""Print the walk of a query: the files of the package that it executes, in their order.

    python scripts/walk.py                          queries/influencers-expression.rspql
    python scripts/walk.py run QUERY --stream ...   any command of `rsp`

A file has its turn when one of its functions is first called, so
files that only declare types or constants are left out; so is what runs while modules are imported.
The first line of its docstring says what a file is for.
"""

from __future__ import annotations

import ast
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import requests

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rsp_engine"


class Walk:
    """Notes the files whose functions are called, each at its first call."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self._depth: dict[int, int] = {}
        """How many modules each thread is importing."""

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:  # noqa: ANN401 - of sys
        """Take an event of the interpreter."""
        name, thread = frame.f_code.co_filename, threading.get_ident()
        depth = self._depth.setdefault(thread, 0)
        if frame.f_code.co_name == "<module>":
            self._depth[thread] += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not depth and name.startswith(f"{PACKAGE}/"):
            self.files.setdefault(name)


def walked(arguments: list[str]) -> list[Path]:
    """Run a command of `rsp` and return the files that it executes."""
    from rsp_engine.cli import main

    walk = Walk()
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        main(arguments, standalone_mode=False)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return [Path(name) for name in walk.files]


def influencers() -> list[Path]:
    """Return the files that rank the users of the examples, against a SPARQL server."""
    from rsp_engine.experiments.demonstration import server

    with server() as url, TemporaryDirectory() as folder:
        people = (ROOT / "examples" / "people.ttl").read_bytes()
        kind = {"Content-Type": "text/turtle"}
        requests.post(f"{url}/store?default", people, headers=kind, timeout=30).raise_for_status()
        query, stream = "queries/influencers-expression.rspql", "examples/mentions.jsonl"
        service = f"http://example.org/users/sparql={url}/query"
        words = f"run {ROOT}/{query} --runner local --policy AT-TSM --budget 2 --n 3"
        more = ["--stream", f":S={ROOT}/{stream}", "--service", service, "--no-live"]
        return walked([*words.split(), *more, "--output", f"{folder}/answers.jsonl"])


def lines(files: Iterable[Path]) -> list[str]:
    """Return a line for each file: its path in the package, and the first line of its docstring."""
    found = []
    for path in files:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found.append(f"{path.relative_to(PACKAGE)!s:<46} {docstring.partition(chr(10))[0]}")
    return found


if __name__ == "__main__":
    files = walked(sys.argv[1:]) if sys.argv[1:] else influencers()
    print("\n".join(lines(files)))  # noqa: T201 - this is what it is for
