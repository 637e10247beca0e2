"""The configuration file `rsp.toml`: defaults of the flags.

    [run]                         # any flag of `rsp run`, by its name
    queries = ["hot.rspql"]
    max-delay = "5s"

    [streams]                     # a table for each flag that binds something: streams, graphs,
    ":readings" = "readings.nq"   # functions, services, changes

    [[sink]]                      # an output, by its address and its options; as many as you want
    to = "mqtt://localhost/warm"
    retain = true

    [spark]                       # settings of Spark, without their first word
    executor.memory = "4g"

Paths are relative to the folder of the file. A flag on the command line overrides a variable of the
environment (`RSP_MAX_DELAY`), which overrides the file, which overrides the default of the flag.

`rsp.toml` of the current folder is read by default, and may be untrusted: it can only name output
files within that folder, and has no settings of Spark, which can name any program. Flags,
variables and a file that `--config` names have no such limit.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from rsp_engine.cli.app import exit_on_error
from rsp_engine.cli.value_reasons import value_reason
from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = [
    "ConfigFlag",
    "FilesArgument",
    "configured_queries",
    "read_config",
    "refuse_writing_elsewhere",
]

USUAL = "rsp.toml"
_SINKS = "sink"
"""The tables of outputs, each with its address and its options."""
_IMPLICIT = "rsp_engine.cli.config: parameters set by a file that --config does not name"
_TABLES = {
    "streams": "stream",
    "graphs": "graph",
    "functions": "function",
    "services": "service",
    "changes": "changes",
    "spark": "conf",
}
_BOUND_PATHS = ("IRI=SOURCE", "IRI=FILE")
"""The placeholders of flags that bind a name to a path."""
_WRITTEN_PATHS = ("FILE", "FOLDER", "PATH")
"""The placeholders of flags whose value is a path; a run writes to each of them."""
_ONLY_OF_RUN = ("format",)  # `rsp explain --format` is the format of a plan, not of answers


def read_config(path: Path, params: Mapping[str, Any], command: str | None) -> dict[str, Any]:
    """Return the values that a file sets for the parameters of a command, by parameter name."""
    import tomllib  # most runs have no such file

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BindingError(f"{path}: {error.strerror}", "name another one: --config FILE") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BindingError(f"{path} is not TOML: {error}") from None
    sections = ["run", *_TABLES, _SINKS]
    for section in content:
        if section not in sections:
            hint = _nearest(section, sections) or f"it has {', '.join(f'[{s}]' for s in sections)}"
            raise BindingError(f"{path}: there is no [{section}]", hint)
    values = dict(_flags(path, _table(path, content, "run"), params, command))
    sinks = [*_sinks(path, content.get(_SINKS, []))]
    if sinks and "--output" in getattr(params.get("output"), "opts", ()):
        values["output"] = [*values.get("output", ()), *sinks]
    elif sinks and _SINKS in params:  # of `rsp doctor`
        from rsp_engine.io.sinks.destinations import is_sink_url

        values[_SINKS] = [each for each in sinks if is_sink_url(each)]
    for section, flag in _TABLES.items():
        table = _table(path, content, section)
        if flag in params and table:
            is_spark = section == "spark"
            values[flag] = [
                *(_settings(path, table) if is_spark else _bound(path, table, params[flag]))
            ]
    return values


def _nearest(name: str, known: Iterable[str]) -> str | None:
    close = get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]}?" if close else None


def _table(path: Path, content: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    table = content.get(section, {})
    if not isinstance(table, dict):
        raise BindingError(f"{path}: {section} must be a table", f"write [{section}] above it")
    return table


def _flags(
    path: Path, table: Mapping[str, Any], params: Mapping[str, Any], command: str | None
) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that a table sets; ignore those that only `rsp run` has."""
    names = dict(_names(params.values()))
    every = {*names, *_names_of_run()}
    for key, value in table.items():
        if key not in every:
            hint = _nearest(key, every) or "the flags of `rsp run` are its keys: rsp run --help"
            raise BindingError(f"{path}: there is no {key} in [run]", hint)
        if key == "queries":
            yield "files", _checked_names(path, _relative_to(path, value))
        elif key in names and (command == "run" or key not in _ONLY_OF_RUN):
            name, param = names[key], params[names[key]]
            is_path = param.metavar in _WRITTEN_PATHS
            if name == "output" and isinstance(value, str):
                value = [value]  # noqa: PLW2901 - one output needs no list
            yield name, _checked(path, key, _relative_to(path, value) if is_path else value, param)


def _names(params: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield the key of each flag in the file, and the name of its parameter."""
    yield "queries", "files"
    for param in params:
        for flag in param.opts:
            if flag.startswith("--") and param.name not in (*_TABLES.values(), "config"):
                yield flag.removeprefix("--"), param.name


def _names_of_run() -> dict[str, str]:
    from rsp_engine.cli.app import app

    group: Any = typer.main.get_command(app)
    return dict(_names(group.commands["run"].params))


def _checked_names(path: Path, value: Any) -> Any:  # noqa: ANN401 - as TOML has it
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return value
    raise BindingError(f'{path}: queries must be a list: queries = ["query.rspql"]')


def _checked(path: Path, key: str, value: Any, param: Any) -> Any:  # noqa: ANN401 - as TOML has it
    """Return a value that its flag accepts; raise if it does not."""
    if getattr(param, "multiple", False):
        if not isinstance(value, list):
            raise BindingError(f"{path}: {key} must be a list: {key} = [...]")
    elif isinstance(value, dict | list):
        raise BindingError(f"{path}: {key} must be one value")
    try:
        param.process_value(typer.Context(typer.core.TyperCommand("run")), value)
    except Exception as error:
        reason = value_reason(str(getattr(error, "message", error)))
        raise BindingError(f"{path}: {key} = {value!r}: {reason.rstrip('.')}") from None
    return value


def _relative_to(path: Path, value: Any) -> Any:  # noqa: ANN401 - as TOML has it
    """Return a path, or a list of them, relative to the folder of the file."""
    if isinstance(value, list):
        return [_path(path, each) if isinstance(each, str) else each for each in value]
    return _path(path, value) if isinstance(value, str) else value


def _bound(path: Path, table: Mapping[str, Any], param: Any) -> Iterator[str]:  # noqa: ANN401 - typer has no public type
    """Yield the bindings of a table, as they would follow a flag."""
    from rsp_engine.replica.endpoints.file_endpoint import is_file_endpoint

    for iri, value in table.items():
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(each, str) and each for each in values):
            is_one = param.name in ("service", "graph", "function")
            hint = f'"{iri}" = "..."' if is_one else f'"{iri}" = "..." or a list of them'
            raise BindingError(f"{path}: what {iri} is bound to must be text", hint)
        for each in values:
            is_path = param.metavar in _BOUND_PATHS or (
                param.name == "service" and is_file_endpoint(each)
            )
            yield f"{iri}={_path(path, each) if is_path else each}"


def _settings(path: Path, table: Mapping[str, Any], prefix: str = "spark") -> Iterator[str]:
    """Yield the settings of Spark, as they would follow their flag.

    >>> list(_settings(Path("rsp.toml"), {"executor": {"cores": 2}, "spark.speculation": True}))
    ['spark.executor.cores=2', 'spark.speculation=true']
    """
    for key, value in table.items():
        name = key if key.startswith("spark.") else f"{prefix}.{key}"
        if isinstance(value, dict):
            yield from _settings(path, value, name)
        elif isinstance(value, bool):
            yield f"{name}={str(value).lower()}"
        elif isinstance(value, str | int | float):
            yield f"{name}={value}"
        else:
            raise BindingError(f"{path}: {name} in [spark] must be text, a number or a boolean")


def _sinks(path: Path, tables: Any) -> Iterator[str]:  # noqa: ANN401 - as TOML has it
    """Yield the outputs of `[[sink]]`, as they would follow their flag.

    >>> tables = [{"to": "mqtt://localhost/warm", "retain": True}, {"to": "a.csv"}]
    >>> list(_sinks(Path("in/rsp.toml"), tables))
    ['mqtt://localhost/warm?retain=true', 'in/a.csv']
    """
    if not isinstance(tables, list):
        raise BindingError(f"{path}: [{_SINKS}] must be a list", f"write [[{_SINKS}]]")
    for table in tables:
        place = table.get("to", "")
        if not isinstance(place, str) or not place:
            found = f", but {', '.join(table)}" if table else ""
            hint = 'write to = "mqtt://host/topic", or a path'
            raise BindingError(f"{path}: a [[{_SINKS}]] has no address{found}", hint)
        options = {key: value for key, value in table.items() if key != "to"}
        for key, value in options.items():
            if not isinstance(value, str | int | float):
                kinds = "text, a number or a boolean"
                raise BindingError(f"{path}: {key} in [[{_SINKS}]] must be {kinds}")
        pairs = "&".join(f"{quote(key)}={quote(_as_text(v))}" for key, v in options.items())
        # The options follow the last question mark, so an address with one needs another.
        address = place.removesuffix("?")
        yield _path(path, f"{address}?{pairs}" if pairs or "?" in address else address)


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path(path: Path, text: str) -> str:
    """Return a source with its path, and that of its template, relative to the folder of the file.

    >>> _path(Path("a/rsp.toml"), "b.csv?template=c.ttl&unit=s"), _path(Path("rsp.toml"), "b.nq")
    ('a/b.csv?template=a/c.ttl&unit=s', 'b.nq')
    """
    from rsp_engine.io.sources.spec import is_url

    folder = path.parent
    address, mark, options = text.partition("?")
    if text == "-" or is_url(address):
        return text
    parts = [
        f"template={folder / part.removeprefix('template=')}"
        if part.startswith("template=")
        else part
        for part in options.split("&")
    ]
    return f"{folder / address}{mark}{'&'.join(parts)}"


def _configure(context: typer.Context, value: str | None) -> str | None:
    """Set the defaults of the flags from a file and the environment, before flags are parsed."""
    path = Path(USUAL) if value is None else Path(value)
    params: dict[str, Any] = {param.name: param for param in context.command.params if param.name}
    has_file = value is not None or path.is_file()
    with exit_on_error():
        from_file = read_config(path, params, context.command.name) if has_file else {}
        from_environment = dict(_environment(params, os.environ))
        context.default_map = {**from_file, **from_environment}
    implicit = from_file.keys() - from_environment.keys()
    context.meta[_IMPLICIT] = set() if value is not None else implicit
    return str(path) if has_file else None


def refuse_writing_elsewhere(context: typer.Context) -> None:
    """Refuse what `rsp.toml` may not set if it was read by default.

    These are settings of Spark, and an output path outside of the folder. Symbolic links are
    followed: neither the path nor a link within an existing folder may lead out.
    """
    folder = Path().resolve()
    implicit: set[str] = context.meta.get(_IMPLICIT, set())
    if "conf" in implicit:
        message = (
            f"{USUAL}: settings of Spark can run any program, so [spark] is not read by default"
        )
        raise BindingError(message, f"allow it explicitly: --config {USUAL}")
    for param in context.command.params:
        name, key = param.name or "", param.opts[0].removeprefix("--")
        value = context.params.get(name)
        source = context.get_parameter_source(name)
        is_default = source is not None and source.name == "DEFAULT_MAP"
        if param.metavar not in _WRITTEN_PATHS or not is_default or name not in implicit:
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            _refuse_elsewhere(folder, key, each)


def _refuse_elsewhere(folder: Path, key: str, value: object) -> None:
    """Refuse a path outside of a folder, and the address of another program."""
    if not isinstance(value, str) or value == "-":
        return
    from rsp_engine.io.sinks.destinations import is_sink_url
    from rsp_engine.io.sources.spec import read_spec
    from rsp_engine.monitor.redaction import without_secrets

    shown = without_secrets(value)
    hint = f"allow it explicitly: --{key} {shown}, or --config {USUAL}"
    if is_sink_url(value):
        message = f"{USUAL}: {key} = {shown!r} would send the answers to another program"
        raise BindingError(message, hint)
    if (target := _outside(folder, Path(read_spec(value).place))) is not None:
        message = f"{USUAL}: {key} = {value!r} would write to {target}, outside its folder"
        raise BindingError(message, hint)


def _outside(folder: Path, path: Path) -> Path | None:
    """Return the target of a path, or of a link below it, that is outside of a folder."""
    try:
        paths = [path, *(p for p in path.rglob("*") if p.is_symlink())] if path.is_dir() else [path]
        targets = (each.resolve() for each in paths)
        return next((target for target in targets if not target.is_relative_to(folder)), None)
    except (OSError, ValueError, RuntimeError):  # an invalid name, or a cycle of links
        return path


def _environment(
    params: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that variables set; lists such as RSP_STREAM are separated by blanks."""
    for name, param in params.items():
        for flag in param.opts:
            value = environment.get(f"RSP_{flag.removeprefix('--').replace('-', '_').upper()}")
            if value and flag.startswith("--") and name != "config":
                yield name, value.split() if getattr(param, "multiple", False) else value


def configured_queries(
    context: typer.Context, files: list[str] | None, path: str | None
) -> list[str]:
    """Return the query files of the command line, or those of the configuration."""
    queries: list[str] = files or (context.default_map or {}).get("files", [])
    if queries:
        return queries
    where = "" if path is None else f"; or in {path}, under [run]: queries = [...]"
    raise BindingError("no query is named", f"name a file: rsp {context.command.name} FILE{where}")


FilesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE",
        help="RSP-QL files; several run side by side; - is standard input.",
        show_default=False,
    ),
]
ConfigFlag = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        envvar="RSP_CONFIG",
        is_eager=True,
        callback=_configure,
        help=f"The file with defaults of the flags; {USUAL} in the current folder, if it exists.",
    ),
]
