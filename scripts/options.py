"""Write `docs/reference/options.md`: the reference of all options, from their declarations.

python scripts/options.py
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

from rsp_engine.cli.flag_signature import placeholder
from rsp_engine.cli.flags import RunFlags
from rsp_engine.model.option import declared
from rsp_engine.options import EngineOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.option import Option, Options

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "options.md"
HEAD = """# Options

`python scripts/options.py` writes this page from the declarations of the options, most of them in
`rsp_engine/options.py`. An option such as `max_delay` is

- a flag of `rsp run` and `rsp explain`: `--max-delay 5s`;
- a key of `[run]` in `rsp.toml`: `max-delay = "5s"`, see [configuration](configuration.md);
- a variable of the environment: `RSP_MAX_DELAY=5s`;
- a keyword in Python, if the tables name one: `Engine(max_delay="5s")`.

A duration is a text such as `300ms`, `5s`, `9m` or `PT9M`, or a number of milliseconds. Bindings
are methods of `Engine` in Python: `bind`, `graph`, `define`, `service`, `changes` and `range`.
"""
KEYWORDS = {each.name for each in fields(EngineOptions)}


def page() -> str:
    """Return the page."""
    kinds: dict[str, type[Options]] = get_type_hints(RunFlags)
    lines = (HEAD, *(line for kind in kinds.values() for line in table(kind)))
    return "\n".join(lines).rstrip() + "\n"


def table(kind: type[Options]) -> Iterator[str]:
    """Yield the lines of the table of some options."""
    yield f"## {kind.title}\n\n| flag | keyword | default | meaning |\n|---|---|---|---|"
    for known in declared(kind):
        cells = (flag(known), keyword(known), default(known), meaning(known))
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def flag(known: Option) -> str:
    """Return the flag of an option, with a placeholder for its value."""
    shown = f"{known.flag} {placeholder(known) or ''}".strip()
    return f"`{shown}`" + (f", `--no-{known.key}`" if known.type == bool | None else "")


def keyword(known: Option) -> str:
    """Return the keyword of an option, if there is one."""
    return f"`{known.name}`" if known.name in KEYWORDS else ""


def default(known: Option) -> str:
    """Return the default of an option."""
    if known.default in (None, ()):
        return known.unset or "none"
    return "off" if known.default is False else f"`{known.default_text}`"


def meaning(known: Option) -> str:
    """Return the help of an option, with its limits, and its choices if the flag has them not."""
    choices = ", ".join(f"`{name}`" for name in known.choices)
    more = [f"one of {choices}"] if choices and placeholder(known) == "NAME" else []
    more += [f"at least {known.minimum}"] if known.minimum else []
    more += [f"at most {known.maximum}"] if known.maximum else []
    return known.help + (f" It is {', '.join(more)}." if more else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
