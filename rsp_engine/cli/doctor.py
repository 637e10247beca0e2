"""`rsp doctor`: checks of what a run may need."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine import __version__
from rsp_engine.cli.app import EXIT_FAILURE, OutputFormat, command_app
from rsp_engine.cli.config import ConfigFlag  # noqa: TC001 - typer reads it at run time
from rsp_engine.model.extras import EXTRAS, install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Check", "doctor", "examine"]

_LEAST_MEMORY = 3 << 30
"""2 GB for Java, which is the setting of the session, and some for Python workers."""

_CONNECT_S = 5.0


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check; one that is not `needed` may fail."""

    name: str
    is_well: bool
    told: str
    hint: str | None = None
    needed: bool = True


app = command_app()


@app.command("doctor")
def doctor(
    service: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=URL", help="An endpoint to probe, as well as those of rsp.toml."),
    ] = None,
    sink: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A sink to reach, as well as those of rsp.toml."),
    ] = None,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="text for people, json for programs.")
    ] = OutputFormat.text,
    config: ConfigFlag = None,
) -> None:
    """Check Java, Spark, memory and endpoints: exit 0 if a run can start, else 3.

    Each endpoint is sent one request: ASK {}. To each sink a connection is opened; it is sent
    nothing.
    """
    checks = list(examine([text.rpartition("=")[2] for text in service or []], sink or []))
    if output is OutputFormat.json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        for check in checks:
            mark = "ok     " if check.is_well else "MISSING" if check.needed else "-      "
            typer.echo(f"{mark}  {check.name:10}  {check.told}")
            if not check.is_well and check.hint:
                typer.echo(f"                     = hint: {check.hint}")
    if not all(check.is_well for check in checks if check.needed):
        raise typer.Exit(EXIT_FAILURE)


def examine(urls: list[str], sinks: list[str]) -> Iterator[Check]:
    """Yield the checks, the quick ones first."""
    yield Check("rsp-engine", True, __version__)
    yield Check("Python", True, f"{platform.python_version()}, {sys.executable}")
    yield _java()
    yield Check("Spark", True, f"pyspark {version('pyspark')}")
    yield _memory()
    yield _temporary()
    for name, packages in EXTRAS.items():
        yield _extra(name, packages.split())
    for url in urls:
        yield _endpoint(url)
    for url in sinks:
        yield _sink(url)


def _java() -> Check:
    from rsp_engine.drivers.spark.session import OLDEST_JAVA, java_version

    installed = java_version()
    hint = (
        "install one, for instance: sudo apt-get install openjdk-17-jre-headless;"
        " or run with --runner local"
    )
    if installed is None:
        return Check("Java", False, f"none; Spark needs {OLDEST_JAVA} or later", hint)
    java = os.environ.get("JAVA_HOME") or shutil.which("java")
    hint = f"Spark needs {OLDEST_JAVA} or later; {hint}"
    return Check("Java", installed >= OLDEST_JAVA, f"{installed}, {java}", hint)


def _memory() -> Check:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return Check("memory", True, "not known here", needed=False)
    cores = os.cpu_count() or 1
    text = f"{free / (1 << 30):.1f} GB free, {cores} cores"
    hint = "Spark needs 2 GB, and more for each core: free some memory, or run with --runner local"
    return Check("memory", free >= _LEAST_MEMORY, text, hint, needed=False)


def _temporary() -> Check:
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile():
            free = shutil.disk_usage(folder).free
    except OSError as error:
        hint = "name another folder in the variable TMPDIR"
        return Check("disk", False, f"{folder} cannot be written to: {error.strerror}", hint)
    return Check("disk", True, f"{free / (1 << 30):.1f} GB free in {folder}")


def _extra(name: str, packages: list[str]) -> Check:
    try:
        text = ", ".join(f"{package} {version(package)}" for package in packages)
    except PackageNotFoundError as error:
        hint = f"install it where you need it: {install_command(name)}"
        return Check(f"[{name}]", False, f"{error.name} is not installed", hint, needed=False)
    return Check(f"[{name}]", True, text, needed=False)


def _endpoint(url: str) -> Check:
    """Send an endpoint a trivial request, with the limits and credentials of a run."""
    from rsp_engine.errors import RspError
    from rsp_engine.replica.endpoints.file_endpoint import file_endpoint, is_file_endpoint
    from rsp_engine.replica.endpoints.probe import probe_endpoint

    hint = "is it running, and is the path right (/sparql, /query)?"
    try:
        if is_file_endpoint(url):
            file_endpoint(url)
            return Check("endpoint", True, f"{url} is a file")
        text = probe_endpoint(url)
    except RspError as error:
        return Check("endpoint", False, error.message, error.hint or hint)
    return Check("endpoint", True, text)


def _sink(url: str) -> Check:
    """Open a connection to the other side of a sink."""
    from rsp_engine.errors import RspError
    from rsp_engine.io.sources.live.address import address_of
    from rsp_engine.io.sources.spec import read_spec

    hint = "is it running? answers wait in the outbox until it is"
    try:
        address = address_of(read_spec(url).place, role="SINK")
        with socket.create_connection((address.host, address.port), _CONNECT_S):
            return Check("sink", True, f"{address.name} can be reached")
    except RspError as error:
        return Check("sink", False, error.message, error.hint)
    except OSError as error:
        reason = error.strerror or str(error)
        return Check("sink", False, f"{address.name} cannot be reached: {reason}", hint)
