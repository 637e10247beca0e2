"""`rsp.toml`: what would otherwise be flags, written down once.

    [run]                         # any flag of `rsp run`, by its name
    queries = ["hot.rspql"]
    max-delay = "5s"

    [streams]                     # a table for each flag that binds something: streams, graphs,
    ":readings" = "readings.nq"   # functions, services, changes

Paths are seen from the folder of the file. A flag on the command line wins over a variable of the
environment (`RSP_MAX_DELAY`), that over the file, and that over what is usual.

`rsp.toml` of the current folder is read without being asked for, and may have come with the folder:
what it has written is in that folder. A flag, a variable or a file that `--config` names says more.
"""

from __future__ import annotations

import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rsp_engine.cli.app import exit_on_error
from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["ConfigFlag", "configured_queries", "read_config", "refuse_writing_elsewhere"]

USUAL = "rsp.toml"
_UNASKED = "rsp_engine.cli.config: what a file says that nobody named"
_TABLES = {
    "streams": "stream",
    "graphs": "graph",
    "functions": "function",
    "services": "service",
    "changes": "changes",
}
_ARE_PATHS = ("stream", "graph", "changes")
_PATHS = ("queries", "checkpoint", "output", "dead-letters", "manifest")
_WRITTEN = ("output", "dead-letters", "manifest", "checkpoint")
_MEAN_OTHER_THINGS = ("format",)  # of what is explained, it is not that of answers


def read_config(path: Path, known: Mapping[str, Any], word: str | None) -> dict[str, Any]:
    """Return the values of flags of a word, by the names of their parameters, which are known."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BindingError(f"{path}: {error.strerror}", "name another one: --config FILE") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BindingError(f"{path} is not TOML: {error}") from None
    sections = ["run", *_TABLES]
    for section in told:
        if section not in sections:
            hint = _nearest(section, sections) or f"it has {', '.join(f'[{s}]' for s in sections)}"
            raise BindingError(f"{path}: there is no [{section}]", hint)
    found = dict(_flags(path, _table(path, told, "run"), known, word))
    for section, flag in _TABLES.items():
        if flag in known and (bound := list(_bound(path, _table(path, told, section), flag))):
            found[flag] = bound
    return found


def _nearest(word: str, known: Iterable[str]) -> str | None:
    close = get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]}?" if close else None


def _table(path: Path, told: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    table = told.get(section, {})
    if not isinstance(table, dict):
        raise BindingError(f"{path}: {section} must be a table", f"write [{section}] above it")
    return table


def _flags(
    path: Path, table: Mapping[str, Any], known: Mapping[str, Any], word: str | None
) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that a table sets; what another word knows is for that one."""
    names = dict(_names(known.values()))
    every = {*names, *_names_of_run()}
    for key, value in table.items():
        if key not in every:
            hint = _nearest(key, every) or "the flags of `rsp run` are its keys: rsp run --help"
            raise BindingError(f"{path}: there is no {key} in [run]", hint)
        if key == "queries":
            yield "files", _checked_names(path, _seen_from(path, key, value))
        elif key in names and (word == "run" or key not in _MEAN_OTHER_THINGS):
            name = names[key]
            yield name, _checked(path, key, _seen_from(path, key, value), known[name])


def _names(params: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield what the keys of flags are called, and the names of their parameters."""
    yield "queries", "files"
    for param in params:
        for flag in param.opts:
            if flag.startswith("--") and param.name not in (*_TABLES.values(), "config"):
                yield flag.removeprefix("--"), param.name


def _names_of_run() -> dict[str, str]:
    from rsp_engine.cli.app import app

    words: Any = typer.main.get_command(app)
    return dict(_names(words.commands["run"].params))


def _checked_names(path: Path, value: Any) -> Any:  # noqa: ANN401 - as TOML has it
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    raise BindingError(f'{path}: queries must be a list: queries = ["query.rspql"]')


def _checked(path: Path, key: str, value: Any, param: Any) -> Any:  # noqa: ANN401 - as TOML has it
    """Return a value, if the flag could have it."""
    if getattr(param, "multiple", False):
        if not isinstance(value, list):
            raise BindingError(f"{path}: {key} must be a list: {key} = [...]")
    elif isinstance(value, dict | list):
        raise BindingError(f"{path}: {key} must be one value")
    try:
        param.process_value(typer.Context(typer.core.TyperCommand("run")), value)
    except Exception as error:
        reason = str(getattr(error, "message", error))
        raise BindingError(f"{path}: {key} = {value!r}: {reason.rstrip('.')}") from None
    return value


def _seen_from(path: Path, key: str, value: Any) -> Any:  # noqa: ANN401 - as TOML has it
    if key not in _PATHS:
        return value
    if isinstance(value, list):
        return [_path(path, each) if isinstance(each, str) else each for each in value]
    return _path(path, value) if isinstance(value, str) else value


def _bound(path: Path, table: Mapping[str, Any], flag: str) -> Iterator[str]:
    """Yield what a table binds, as it would be written behind a flag."""
    for iri, value in table.items():
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(each, str) and each for each in values):
            is_one = flag in ("service", "graph", "function")
            hint = f'"{iri}" = "..."' if is_one else f'"{iri}" = "..." or a list of them'
            raise BindingError(f"{path}: what {iri} is bound to must be text", hint)
        for each in values:
            yield f"{iri}={_path(path, each) if flag in _ARE_PATHS else each}"


def _path(path: Path, text: str) -> str:
    """Return a path, and that of its template, as seen from the folder of the configuration.

    >>> _path(Path("a/rsp.toml"), "b.csv?template=c.ttl&unit=s"), _path(Path("rsp.toml"), "b.nq")
    ('a/b.csv?template=a/c.ttl&unit=s', 'b.nq')
    """
    from rsp_engine.io.sources.spec import is_url

    folder = path.parent
    place, mark, options = text.partition("?")
    if text == "-" or is_url(place):
        return text
    parts = [
        f"template={folder / part.removeprefix('template=')}"
        if part.startswith("template=")
        else part
        for part in options.split("&")
    ]
    return f"{folder / place}{mark}{'&'.join(parts)}"


def _configure(context: typer.Context, value: str | None) -> str | None:
    """Let a file say what flags are, before they are looked at."""
    path = Path(USUAL) if value is None else Path(value)
    params: dict[str, Any] = {param.name: param for param in context.command.params if param.name}
    has_file = value is not None or path.is_file()
    with exit_on_error():
        told = read_config(path, params, context.command.name) if has_file else {}
        said = dict(_environment(params, os.environ))
        context.default_map = {**told, **said}
    context.meta[_UNASKED] = set() if value is not None else told.keys() - said.keys()
    return str(path) if has_file else None


def refuse_writing_elsewhere(context: typer.Context) -> None:
    """Refuse what a configuration that nobody named would write outside of its folder.

    Links are followed: neither a path nor what is in a folder that is there already leads out.
    """
    folder = Path().resolve()
    unasked: set[str] = context.meta.get(_UNASKED, set())
    for key in _WRITTEN:
        name, value = key.replace("-", "_"), context.params.get(key.replace("-", "_"))
        source = context.get_parameter_source(name)
        is_told = source is not None and source.name == "DEFAULT_MAP"
        if not is_told or name not in unasked or not isinstance(value, str) or value == "-":
            continue
        if (place := _outside(folder, Path(value))) is not None:
            message = f"{USUAL}: {key} = {value!r} would write to {place}, outside of its folder"
            hint = f"say so yourself: --{key} {value}, or --config {USUAL}"
            raise BindingError(message, hint)


def _outside(folder: Path, path: Path) -> Path | None:
    """Return where a path leads, or a link in it, if that is not in a folder."""
    try:
        found = [path, *(p for p in path.rglob("*") if p.is_symlink())] if path.is_dir() else [path]
        places = (each.resolve() for each in found)
        return next((place for place in places if not place.is_relative_to(folder)), None)
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a ring
        return path


def _environment(
    params: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that variables set: RSP_MAX_DELAY; RSP_STREAM has blanks between."""
    for name, param in params.items():
        for flag in param.opts:
            told = environment.get(f"RSP_{flag.removeprefix('--').replace('-', '_').upper()}")
            if told and flag.startswith("--") and name != "config":
                yield name, told.split() if getattr(param, "multiple", False) else told


def configured_queries(
    context: typer.Context, given: list[str] | None, path: str | None
) -> list[str]:
    """Return the queries that were named, or those of the configuration."""
    found: list[str] = given or (context.default_map or {}).get("files", [])
    if found:
        return found
    where = "" if path is None else f"; or in {path}, under [run]: queries = [...]"
    raise BindingError("no query is named", f"name a file: rsp {context.command.name} FILE{where}")


ConfigFlag = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="RSP_CONFIG",
        is_eager=True,
        callback=_configure,
        help=f"What flags are where they are left out; {USUAL} in this folder, if it is there.",
    ),
]
