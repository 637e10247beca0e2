"""`rsp demo`: a refresh policy under a budget, against a local SPARQL server with changing data."""

from __future__ import annotations

from typing import Annotated

import typer

from rsp_engine.cli.app import EXIT_FAILURE, command_app, exit_on_error
from rsp_engine.options import RunnerName  # noqa: TC001 - typer reads it at run time

__all__ = ["demo"]


app = command_app()


@app.command("demo")
def demo(
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="The policy that elects the users to refresh.")
    ] = "AT-TSM",
    budget: Annotated[int, typer.Option(min=0, help="How many users each window may fetch.")] = 7,
    windows: Annotated[int, typer.Option(min=1, help="How many windows to run.")] = 20,
    runner: Annotated[
        RunnerName,
        typer.Option(
            envvar="RSP_RUNNER", help="Run on Spark, which needs Java, or in this process."
        ),
    ] = "spark",
    speed: Annotated[
        float, typer.Option(min=1.0, help="How many times faster than event time to replay.")
    ] = 60,
) -> None:
    """Rank growing users under a budget, and show what the budget buys.

    Mentions are replayed, and a SPARQL server on this computer serves follower growth that changes.
    Each window is answered three times: within the budget, with no refresh at all, and with all
    users fetched, which is exact.
    """
    from rsp_engine.cli.demo_page import DemoPage

    page = DemoPage(policy, budget)
    page.introduce(speed)  # before the slow imports
    from rsp_engine.experiments.demonstration import DemoSetting, demonstrate

    setting = DemoSetting(policy, budget, windows, runner, speed)
    with exit_on_error(EXIT_FAILURE):
        for window in demonstrate(setting, page.phase):
            page.show(window)
        page.conclude()
