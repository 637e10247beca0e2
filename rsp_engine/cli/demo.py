"""`rsp demo`: a refresh policy under a budget, against a local SPARQL server with changing data."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from rsp_engine.cli.app import EXIT_FAILURE, command_app, exit_on_error
from rsp_engine.options import RunnerName  # noqa: TC001 - typer reads it at run time

__all__ = ["demo", "open_page"]


app = command_app()


@app.command("demo")
def demo(
    context: typer.Context,
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
    web: Annotated[
        bool, typer.Option("--web", help="Show it in a browser, until it is stopped.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of --web; 0 takes a free one.")
    ] = 0,
) -> None:
    """Rank growing users under a budget, and show what the budget buys.

    Mentions are replayed, and a SPARQL server on this computer serves follower growth that changes.
    Each window is answered three times: within the budget, with no refresh at all, and with all
    users fetched, which is exact. With --web, the console of `rsp serve` shows two policies within
    the same budget.
    """
    if web:
        for name in ("windows", "runner"):
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise typer.BadParameter(f"--{name} and --web exclude each other")
        demonstrate_on_page(policy, budget, speed, port)
        return
    if port:
        raise typer.BadParameter("--port is the port of --web")
    from rsp_engine.cli.demo_page import DemoPage

    page = DemoPage(policy, budget)
    page.introduce(speed)  # before the slow imports
    from rsp_engine.experiments.demonstration import DemoSetting, demonstrate

    setting = DemoSetting(policy, budget, windows, runner, speed)
    with exit_on_error(EXIT_FAILURE):
        for window in demonstrate(setting, page.phase):
            page.show(window)
        page.conclude()


def demonstrate_on_page(policy: str, budget: int, speed: float, port: int) -> None:
    """Serve the demo to a browser until it is stopped."""
    from rsp_engine.cli.serve import check_installed

    with exit_on_error(EXIT_FAILURE):
        check_installed("rsp demo --web")
        typer.echo("starting a SPARQL server with the follower growth of 400 users ...", err=True)
        from rsp_engine.policies.registry import policy_named
        from rsp_engine.server.demonstration import WebSetting, demonstrate_in_browser

        try:
            policy_named(policy)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        demonstrate_in_browser(WebSetting(policy, budget, speed, port), open_page)


def open_page(address: str) -> None:
    """Say where a console is, and open it where there is a desktop."""
    typer.echo(f"serving on {address} (Ctrl-C stops it)", err=True)
    has_desktop = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if has_desktop:
        import webbrowser

        webbrowser.open(f"{address}/#/ranking/growingUsers")
