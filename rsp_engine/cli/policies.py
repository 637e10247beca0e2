"""`rsp policies`: the refresh policies, which elect the remote keys to fetch."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rsp_engine.cli.app import OutputFormat
from rsp_engine.cli.commands import command_app

__all__ = ["list_policies"]


app = command_app()


@app.command("policies")
def list_policies(
    output: Annotated[
        OutputFormat, typer.Option("--format", help="text for people, json for programs.")
    ] = OutputFormat.text,
) -> None:
    """List the refresh policies: what each elects, and where it is defined."""
    from rsp_engine.policies.registry import POLICIES

    known = list(POLICIES.values())
    if output is OutputFormat.json:
        rows = [{"name": p.name, "summary": p.summary, "section": p.section} for p in known]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    width = max(len(policy.name) for policy in known)
    for policy in known:
        typer.echo(f"{policy.name:{width}}  {policy.summary} ({policy.section})")
    typer.echo("\nChoose one with --policy NAME; --budget limits how many keys it elects.")
