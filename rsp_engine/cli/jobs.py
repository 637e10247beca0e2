"""`rsp jobs`: the queries of a server."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from rsp_engine.cli.app import OutputFormat, command_app
from rsp_engine.cli.server_flags import USUAL_SERVER, ServerFlag, client_of
from rsp_engine.io.sinks.term_text import iso_time

__all__ = []

_HEADINGS = ("name", "state", "group", "answers", "last window")


app = command_app()


@app.command("jobs")
def list_queries(
    output: Annotated[
        OutputFormat, typer.Option("--format", help="text for people, json for programs.")
    ] = OutputFormat.text,
    server: ServerFlag = USUAL_SERVER,
) -> None:
    """List the queries of a server, each with its state and its last window."""
    with client_of(server) as client:
        queries = client.queries()
    if output is OutputFormat.json:
        typer.echo(json.dumps(queries, ensure_ascii=False, indent=2))
        return
    rows = [_HEADINGS, *map(_row, queries)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
    for query in queries:
        if query["reason"] is not None:
            typer.echo(f"{query['name']}: {query['reason']}", err=True)


def _row(query: dict[str, Any]) -> tuple[str, ...]:
    window = query["status"]["last_window"]
    last = "" if window is None else iso_time(window["close"])
    count = query["answers"]["last"] or 0
    return query["name"], query["state"], query["group"], str(count), last
