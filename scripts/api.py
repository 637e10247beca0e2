"""Write `docs/reference/api.md`: the Python API, from its signatures and docstrings.

python scripts/api.py
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import rsp_engine
from rsp_engine import errors
from rsp_engine.drivers.fed_run import FedRun
from rsp_engine.engine import Engine
from rsp_engine.testing import StreamTest

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api.md"
HEAD = """# Python API

`python scripts/api.py` writes this page from the docstrings. All times are integer milliseconds of
event time; a duration is milliseconds, or a text such as `"5s"`. The keywords of `Engine` are
[options](options.md).
"""
SECTIONS = re.compile(r"^(Args|Raises|Returns|Attributes):$", re.MULTILINE)
ENTRY = re.compile(r"^    (\w+): ", re.MULTILINE)
ORDER = ("Engine", "Query", "Answer", "Solutions", "Row", "Graph", "Boolean", "Interval")
"""The classes of `rsp_engine` that come first."""


def page() -> str:
    """Return the page."""
    names = [*ORDER, *sorted(set(rsp_engine.__all__) - set(ORDER) - {"__version__", "RspError"})]
    parts = [HEAD, "## rsp_engine\n"]
    parts += [part for name in names for part in described(name, getattr(rsp_engine, name))]
    parts += described("FedRun", FedRun, " `Engine.begin` returns it.")
    parts += ["## rsp_engine.testing\n", *described("StreamTest", StreamTest)]
    parts += [
        "## Errors\n",
        "All errors that the engine raises on purpose are in `rsp_engine.errors`:\n",
    ]
    parts += [f"```text\n{drawn_errors()}\n```\n"]
    return "\n".join(parts).rstrip() + "\n"


def drawn_errors() -> str:
    """Return the tree of errors, as the module draws it."""
    _, tree, _ = (errors.__doc__ or "").split("\n\n", 2)
    return dedent(tree)


def described(name: str, item: Any, more: str = "") -> Iterator[str]:  # noqa: ANN401 - a class or a function
    """Yield the parts about a class or a function."""
    yield f"### {name}\n"
    if inspect.isclass(item):
        doc = Engine.__doc__ if item is Engine else item.__doc__
        yield from documented(doc or "", more)
        if is_dataclass(item) and not item.__name__.startswith("Query"):
            yield table("field", ((f.name, str(f.type)) for f in fields(item)))
        for method, function in members(item):
            yield f"#### {name}.{method}\n"
            yield from signed(f"{name}.{method}", function)
    else:
        yield from signed(name, item)


def members(item: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, in the order of its text."""
    for name, member in vars(item).items():
        if not name.startswith("_") and (
            inspect.isfunction(member) or isinstance(member, property)
        ):
            yield name, member


def signed(name: str, member: Any) -> Iterator[str]:  # noqa: ANN401 - a function or a property
    """Yield the signature and the docstring of a function, or the docstring of a property."""
    if not isinstance(member, property):
        signature = str(inspect.signature(member)).replace("(self, ", "(").replace("(self)", "()")
        yield f"```text\n{name}{re.sub(chr(39), '', signature)}\n```\n"
    yield from documented(member.__doc__ or "")


def documented(doc: str, more: str = "") -> Iterator[str]:
    """Yield the parts of a docstring: its text, tables of parameters and errors, examples."""
    text, _, example = inspect.cleandoc(doc).partition(">>> ")
    head, *sections = SECTIONS.split(text)
    yield head.strip() + more + "\n"
    for kind, body in zip(sections[::2], sections[1::2], strict=True):
        entries = ENTRY.split("\n" + body.strip("\n").split("\n\n")[0])
        rows = zip(entries[1::2], entries[2::2], strict=True)
        title = {"Args": "parameter", "Raises": "raised", "Attributes": "field"}.get(kind)
        if title is None:
            yield f"Returns: {' '.join(body.split())}\n"
        else:
            yield table(title, ((entry, " ".join(words.split())) for entry, words in rows))
    if example:
        yield f"```pycon\n>>> {example.rstrip()}\n```\n"


def table(title: str, rows: Iterator[tuple[str, str]]) -> str:
    """Return a table of names and what they mean."""
    lines = [f"| `{name}` | {words.replace('|', chr(92) + '|')} |" for name, words in rows]
    return "\n".join([f"| {title} | meaning |", "|---|---|", *lines, ""]) if lines else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
