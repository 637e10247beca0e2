"""`rsp tail`: the answers of a query of a server, as they come."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.cli.app import command_app
from rsp_engine.cli.server_flags import USUAL_SERVER, ServerFlag, client_of
from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.client import Client, ServedAnswer

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
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Show the live view of `rsp run`; by default on a terminal.",
        ),
    ] = None,
    server: ServerFlag = USUAL_SERVER,
) -> None:
    """Print the answers of a query of a server as they come, a line of JSON each.

    On a terminal, the current answer is shown as a table that is updated in place.
    """
    with client_of(server) as client, suppress(KeyboardInterrupt, BrokenPipeError):
        answers = _answers(client, name, None if everything else last, follow=follow)
        if _wants_live_view(live, follow=follow):
            _show(client, name, answers)
            return
        for answer in answers:
            typer.echo(answer.line)


def _answers(
    client: Client, name: str, last: int | None, *, follow: bool
) -> Iterator[ServedAnswer]:
    """Yield the last answers, or all that are kept, and then those that come."""
    query = client.query(name)
    newest = query["answers"]["last"] or 0
    kept = (query["answers"]["first"] or newest + 1) - 1
    after = kept if last is None else max(newest - last, kept)
    if not follow and after >= newest:
        return
    for answer in client.answers(name, after=after):
        yield answer
        if not follow and answer.id >= newest:
            return


def _wants_live_view(wanted: bool | None, *, follow: bool) -> bool:
    is_terminal = sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    if wanted and not (is_terminal and follow):
        raise BindingError("--live needs a terminal, and an answer to wait for", "remove it")
    return follow and is_terminal if wanted is None else wanted


def _show(client: Client, name: str, answers: Iterator[ServedAnswer]) -> None:
    from rich.console import Console

    from rsp_engine.cli.live_view import LiveView
    from rsp_engine.cli.remote_run import RemoteRun

    run = RemoteRun(client, name)
    with LiveView(run.monitor, Console()):
        for answer in answers:
            run.show(answer)
