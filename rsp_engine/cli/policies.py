"""`rsp policies`: the refresh policies, which elect the remote keys to fetch."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rsp_engine.cli.app import OutputFormat, exit_on_error

__all__ = []

app = typer.Typer(
    name="policies",
    help="List the refresh policies, or begin one of your own.",
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def list_policies(
    context: typer.Context,
    output: Annotated[
        OutputFormat, typer.Option("--format", help="text for people, json for programs.")
    ] = OutputFormat.text,
) -> None:
    """List the refresh policies: what each elects, and where it is defined."""
    if context.invoked_subcommand is not None:
        return
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
    typer.echo("`rsp policies new FILE` writes a policy of your own, for --policy FILE:NAME.")


@app.command("new")
def new_policy(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The Python file to write.")],
) -> None:
    """Write a file with a policy to start from. A file that exists is left as it is.

    Example: rsp policies new mine.py
    """
    from pathlib import Path

    from rsp_engine.errors import BindingError
    from rsp_engine.policies.policy_file import POLICY_TEMPLATE

    with exit_on_error():
        if not file.endswith(".py"):
            raise BindingError(f"{file} is not a Python file", f"write {file}.py")
        try:
            with Path(file).open("x", encoding="utf-8") as written:
                written.write(POLICY_TEMPLATE.replace("{file}", file))
        except FileExistsError:
            raise BindingError(f"{file} exists already, and is left as it is") from None
        except OSError as error:
            raise BindingError(f"{file} cannot be written: {error.strerror}") from error
    typer.echo(f"Try it with --policy {file}:MY_POLICY.")
