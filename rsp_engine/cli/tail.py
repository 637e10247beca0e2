"""`rsp tail`: the answers of a query of a server, as they come."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from rsp_engine.cli.app import command_app
from rsp_engine.cli.server_flags import USUAL_SERVER, ServerFlag, client_of

__all__ = []


app = command_app()


@app.command("tail")
def tail_query(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the query.")],
    last: Annotated[
        int, typer.Option(metavar="N", min=0, help="Begin with the last N answers.")
    ] = 10,
    everything: Annotated[
        bool, typer.Option("--all", help="Begin with the first answer that is kept.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for further answers.")
    ] = True,
    server: ServerFlag = USUAL_SERVER,
) -> None:
    """Print the answers of a query of a server as they come, a line of JSON each."""
    with client_of(server) as client, suppress(KeyboardInterrupt, BrokenPipeError):
        query = client.query(name)
        newest = query["answers"]["last"] or 0
        kept = (query["answers"]["first"] or newest + 1) - 1
        after = kept if everything else max(newest - last, kept)
        if not follow and after >= newest:
            return
        for answer in client.answers(name, after=after):
            typer.echo(answer.line)
            if not follow and answer.id >= newest:
                return
