"""`rsp explain`: how a query would be run, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rsp_engine.cli.app import Format, app, failures

__all__ = ["explain_file"]


@app.command("explain")
def explain_file(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An RSP-QL file; - is standard input.")
    ],
    output: Annotated[
        Format, typer.Option("--format", help="text for people, json for programs.")
    ] = Format.text,
    graph: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=FILE", help="The file of a static graph (repeatable)."),
    ] = None,
) -> None:
    """Print the logical and the physical plan of a query: what is evaluated where, and why."""
    with failures():
        from rsp_engine.cli.binding import bindings
        from rsp_engine.grammar import check
        from rsp_engine.grammar.files import read_query
        from rsp_engine.plan.explain import explain, explain_json
        from rsp_engine.plan.options import Options
        from rsp_engine.plan.planner import plan

        text = read_query(file)
        query = check(text, file)
        graphs = bindings(graph or [], (), query.prefixes, "--graph")
        options = Options(
            graphs={iri: Path(path) for iri, path in graphs}, folder=Path(file).parent
        )
        made = plan(query, text, file, options)
        if output is Format.json:
            typer.echo(json.dumps(explain_json(made), ensure_ascii=False, indent=2))
        else:
            typer.echo(explain(made), nl=False)
