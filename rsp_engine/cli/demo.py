"""`rsp demo`: a budget at work, against a real SPARQL server that changes."""

from __future__ import annotations

from typing import Annotated

import typer

from rsp_engine.cli.app import WORLDS_FAULT, app, exit_on_error
from rsp_engine.cli.run import Runner

__all__ = ["demo"]


@app.command("demo")
def demo(
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="What elects the users to fetch anew.")
    ] = "AT-TSM",
    budget: Annotated[int, typer.Option(min=0, help="How many users a window may fetch.")] = 7,
    windows: Annotated[int, typer.Option(min=1, help="After how many windows it ends.")] = 20,
    runner: Annotated[
        Runner, typer.Option(envvar="RSP_RUNNER", help="Spark, which needs Java, or this process.")
    ] = Runner.spark,
    speed: Annotated[
        float, typer.Option(min=1.0, help="How many times faster than it happened.")
    ] = 60,
) -> None:
    """Rank users who grow, under a budget, and see how good the answers are.

    Mentions are replayed, a SPARQL server on this computer tells who wins followers, and an oracle
    that may ask for all users judges each answer: the users, their scores, and how old is what was
    known of them.
    """
    from rsp_engine.experiments.demonstration import DemoSetting, demonstrate

    with exit_on_error(WORLDS_FAULT):
        demonstrate(typer.echo, DemoSetting(policy, budget, windows, runner.value, speed))
