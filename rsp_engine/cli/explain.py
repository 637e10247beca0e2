"""`rsp explain`: the plans of queries, and the reasons for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from rsp_engine.cli.app import GroupedCommand, command_app, exit_on_error
from rsp_engine.cli.config import ConfigFlag, FilesArgument, configured_queries
from rsp_engine.cli.flag_signature import takes_flags
from rsp_engine.cli.flags import RunFlags
from rsp_engine.cli.query_setup import engine_of, register_queries
from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.evaluators.service.shared_services import BudgetRules
    from rsp_engine.plan.planner import QueryPlan

__all__ = ["explain_files"]

_FORMATS = ("text", "json", "dot", "svg")


app = command_app()


@app.command("explain", cls=GroupedCommand)
@takes_flags(RunFlags)
def explain_files(
    context: typer.Context,
    flags: RunFlags,
    files: FilesArgument = None,
    config: ConfigFlag = None,
    output_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            autocompletion=lambda incomplete: [n for n in _FORMATS if n.startswith(incomplete)],
            help="text for people, json for programs, dot for Graphviz, svg for a picture; a format"
            " of answers is text.",
        ),
    ] = "text",
    why_not: Annotated[
        bool,
        typer.Option("--why-not", help="Also print why no other operator was chosen."),
    ] = False,
) -> None:
    """Print the logical and the physical plan of queries: what is evaluated where, and why.

    All flags of rsp run are accepted; those that do not change a plan have no effect.
    """
    with exit_on_error():
        _check_format(output_format)
        engine = engine_of(context, flags)
        named = configured_queries(context, files, config)
        planned = register_queries(engine, named, flags.bindings, opens_sources=False).queries
        engine.check(sources=False)
        typer.echo(
            _explained(planned, engine.budget_rules(), output_format, why_not=why_not), nl=False
        )


def _check_format(name: str) -> None:
    from rsp_engine.io.sinks import FORMATS

    if name not in (*_FORMATS, *FORMATS):
        hint = f"the formats of plans are {', '.join(_FORMATS)}"
        raise BindingError(f"there is no format `{name}`", hint)


def _explained(
    planned: Sequence[QueryPlan], rules: BudgetRules, name: str, *, why_not: bool
) -> str:
    """Return plans in a format; several plans in JSON are an array."""
    from rsp_engine.drivers.splits.shared_matching import shared_matching
    from rsp_engine.plan.explain.dot import explain_dot
    from rsp_engine.plan.explain.svg import explain_svg
    from rsp_engine.plan.explain.text import explain_all, explain_all_json

    if name in ("dot", "svg"):
        if why_not:
            raise BindingError(
                f"{name} does not draw the reasons of --why-not", "take text or json"
            )
        if len(planned) > 1:
            raise BindingError(f"{name} draws the plan of one query", "name one file")
        return explain_dot(planned[0]) if name == "dot" else explain_svg(planned[0])
    matching = shared_matching([plan.physical for plan in planned])
    if name == "json":
        plans = explain_all_json(planned, why_not=why_not, rules=rules, matching=matching)
        data = plans if len(plans) > 1 else plans[0]
        return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    return explain_all(planned, why_not=why_not, rules=rules, matching=matching)
