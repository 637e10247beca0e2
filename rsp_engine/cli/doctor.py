"""`rsp doctor`: whether all that a run may need is there."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine import __version__
from rsp_engine.cli.app import WORLDS_FAULT, OutputFormat, app
from rsp_engine.cli.config import ConfigFlag  # noqa: TC001 - it is read when the word is made

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Check", "doctor", "examine"]

_LEAST_MEMORY = 3 << 30
_EXTRAS = {
    "mqtt": "paho-mqtt",
    "ws": "websockets",
    "jelly": "pyjelly",
    "metrics": "prometheus-client",
    "plots": "matplotlib",
    "fast": "numba",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. What is not `needed` may be missing."""

    name: str
    is_well: bool
    told: str
    hint: str | None = None
    needed: bool = True


@app.command("doctor")
def doctor(
    service: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=URL", help="An endpoint to reach, beside those of rsp.toml."),
    ] = None,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="text for people, json for programs.")
    ] = OutputFormat.text,
    config: ConfigFlag = None,
) -> None:
    """Look whether Java, Spark, memory and endpoints are fit for a run: exit 0 if all are, else 3.

    Each endpoint is sent one request: ASK {}.
    """
    found = list(examine([text.rpartition("=")[2] for text in service or []]))
    if output is OutputFormat.json:
        typer.echo(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        for finding in found:
            mark = "ok     " if finding.is_well else "MISSING" if finding.needed else "-      "
            typer.echo(f"{mark}  {finding.name:10}  {finding.told}")
            if not finding.is_well and finding.hint:
                typer.echo(f"                     = hint: {finding.hint}")
    if not all(finding.is_well for finding in found if finding.needed):
        raise typer.Exit(WORLDS_FAULT)


def examine(urls: list[str]) -> Iterator[Check]:
    """Yield what is found, the quick things first."""
    yield Check("rsp-engine", True, __version__)
    yield Check("Python", True, f"{platform.python_version()}, {sys.executable}")
    yield _java()
    yield Check("Spark", True, f"pyspark {version('pyspark')}")
    yield _memory()
    yield _temporary()
    for name, package in _EXTRAS.items():
        yield _extra(name, package)
    for url in urls:
        yield _endpoint(url)


def _java() -> Check:
    from rsp_engine.drivers.spark.session import OLDEST_JAVA, java_version

    found = java_version()
    hint = (
        "install one, for instance: sudo apt-get install openjdk-17-jre-headless;"
        " or run with --runner local"
    )
    if found is None:
        return Check("Java", False, f"none; Spark needs {OLDEST_JAVA} or later", hint)
    java = os.environ.get("JAVA_HOME") or shutil.which("java")
    told = f"{found}, {java}"
    return Check("Java", found >= OLDEST_JAVA, told, f"Spark needs {OLDEST_JAVA} or later; {hint}")


def _memory() -> Check:
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return Check("memory", True, "not known here", needed=False)
    cores = os.cpu_count() or 1
    told = f"{free / (1 << 30):.1f} GB free, {cores} cores"
    hint = "Spark takes 2 GB and some for each core: close something, or run with --runner local"
    return Check("memory", free >= _LEAST_MEMORY, told, hint, needed=False)


def _temporary() -> Check:
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile():
            free = shutil.disk_usage(folder).free
    except OSError as error:
        hint = "name another folder in the variable TMPDIR"
        return Check("disk", False, f"{folder} cannot be written to: {error.strerror}", hint)
    return Check("disk", True, f"{free / (1 << 30):.1f} GB free in {folder}")


def _extra(name: str, package: str) -> Check:
    try:
        told = f"{package} {version(package)}"
    except PackageNotFoundError:
        hint = f'install it where you need it: pip install "rsp-engine[{name}]"'
        return Check(f"[{name}]", False, f"{package} is not installed", hint, needed=False)
    return Check(f"[{name}]", True, told, needed=False)


def _endpoint(url: str) -> Check:
    """Ask an endpoint for next to nothing, as a run would ask: with its limits and credentials."""
    from rsp_engine.errors import RspError
    from rsp_engine.replica.endpoints.probe import probe_endpoint

    hint = "is it running, and is the path right (/sparql, /query)?"
    try:
        told = probe_endpoint(url)
    except RspError as error:
        return Check("endpoint", False, error.message, error.hint or hint)
    return Check("endpoint", True, told)
