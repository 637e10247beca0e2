"""`rsp stop`: stopping a query of a server."""

from __future__ import annotations

from typing import Annotated

import typer

from rsp_engine.cli.app import command_app
from rsp_engine.cli.server_flags import USUAL_SERVER, ServerFlag, client_of

__all__ = []


app = command_app()


@app.command("stop")
def stop_query(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the query.")],
    pause: Annotated[
        bool, typer.Option("--pause", help="Keep the query and its answers, to resume it later.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a query that was paused, or has failed.")
    ] = False,
    server: ServerFlag = USUAL_SERVER,
) -> None:
    """Stop a query of a server and remove its answers, or pause it."""
    if pause and resume:
        raise typer.BadParameter("--pause and --resume exclude each other")
    with client_of(server) as client:
        if pause:
            client.pause(name)
        elif resume:
            client.resume(name)
        else:
            client.delete(name)
