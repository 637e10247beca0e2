"""`rsp submit`: registering a query with a server."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rsp_engine.cli.app import command_app
from rsp_engine.cli.server_flags import USUAL_SERVER, ServerFlag, client_of
from rsp_engine.errors import BindingError
from rsp_engine.grammar.validate import read_query

__all__ = []


app = command_app()


@app.command("submit")
def submit_query(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An RSP-QL file; - is standard input.")
    ],
    name: Annotated[
        str | None, typer.Option(help="The name of the query; by default that of its REGISTER.")
    ] = None,
    start: Annotated[
        str, typer.Option(help="now, earliest, or a time: where the query begins.")
    ] = "now",
    group: Annotated[
        str | None, typer.Option(help="The group whose process it shares; by default its own.")
    ] = None,
    service: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=URL", help="A SERVICE and its endpoint (repeatable)."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the query, such as policy=AT-TSM or max_delay=5s (repeatable).",
        ),
    ] = None,
    server: ServerFlag = USUAL_SERVER,
) -> None:
    """Register a query with a server that `rsp serve` has started.

    It prints the name of the query, under which `rsp tail` shows its answers.
    """
    with client_of(server) as client:
        body: dict[str, Any] = {
            "name": name,
            "start": int(start) if start.isdecimal() else start,
            "group": group,
            "services": dict(_pair(text, "--service IRI=URL") for text in service or ()),
            "options": {
                key: _value(value)
                for key, value in (_pair(text, "--option NAME=VALUE") for text in option or ())
            },
        }
        given = {key: value for key, value in body.items() if value is not None}
        query = client.submit(read_query(file), **given)
        for warning in query["warnings"]:
            typer.echo(f"{warning['line']}:{warning['column']}: {warning['message']}", err=True)
        typer.echo(query["name"])


def _pair(text: str, form: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=") if "://" in text else text.partition("=")
    if "://" in text:  # the address follows the first equals sign before a scheme
        name, equals, value = _binding(text)
    if not equals or not name or not value:
        raise BindingError(f"{text} is not of the form of {form}", "write both sides")
    return name, value


def _binding(text: str) -> tuple[str, str, str]:
    at = max(text.rfind("=http://"), text.rfind("=https://"))
    return text[:at], "=" * (at > 0), text[at + 1 :]


def _value(text: str) -> str | int | bool:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() else text
