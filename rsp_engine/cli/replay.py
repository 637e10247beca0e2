"""`rsp replay`: send a recorded stream to a broker."""

from __future__ import annotations

from typing import Annotated

import typer

from rsp_engine.cli.app import EXIT_FAILURE, command_app, exit_on_error
from rsp_engine.errors import BindingError
from rsp_engine.model.quantities import quantity

__all__ = ["replay_file"]


app = command_app()


@app.command("replay", context_settings={"ignore_unknown_options": True})  # for -?format=
def replay_file(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A recorded stream: a path, - or a URL.")
    ],
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="Where to send it: mqtt:// or kafka://host/topic."),
    ],
    speed: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="FACTOR",
            help="Send by event time, this many times faster; by default all at once.",
        ),
    ] = None,
) -> None:
    """Send a recorded stream to a broker, each element as a message with its time."""
    from rsp_engine.drivers.replay_clock import ReplayClock
    from rsp_engine.io.sinks.delivery.publisher import Publisher
    from rsp_engine.io.sources import open_source
    from rsp_engine.io.sources.live.schemes import is_live_url
    from rsp_engine.io.sources.spec import read_spec
    from rsp_engine.model.streams import DeadLetter

    with exit_on_error():
        if speed == 0:
            raise BindingError("--speed 0: nothing would ever arrive", "use a speed above 0")
        if is_live_url(source):
            raise BindingError(f"{source} is live, not recorded", "name a file")
        items, publisher = open_source(source), Publisher(read_spec(target))
        clock = None if speed is None else ReplayClock(speed)
        sent = dead = 0
        with exit_on_error(EXIT_FAILURE), publisher:
            for item in items:
                if isinstance(item, DeadLetter):
                    dead += 1
                    continue
                if clock is not None:
                    clock.wait(item.timestamp)
                publisher.send(item)
                sent += 1
    left_out = f", {quantity(dead, 'unreadable one')} skipped" if dead else ""
    typer.echo(f"{quantity(sent, 'element')} sent to {target}{left_out}", err=True)
