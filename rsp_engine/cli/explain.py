"""`rsp explain`: the plan of a query, and the reasons for it."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rsp_engine.cli.app import app, exit_on_error
from rsp_engine.cli.config import ConfigFlag, configured_queries
from rsp_engine.cli.ranking import (
    ArrivalsFlag,
    FunctionsFlag,
    MatchChoice,
    MatchFlag,
    MaxInstancesFlag,
    OperatorChoice,
    OperatorFlag,
    RangesFlag,
    value_ranges,
)
from rsp_engine.cli.remote import (
    BudgetFlag,
    CapacityFlag,
    ChangesFlag,
    DeadlineFlag,
    MaxRequestsFlag,
    ModifiedFlag,
    PolicyFlag,
    ReplicaFlag,
    SeedFlag,
    ServicesFlag,
    StandByFlag,
    modified_by,
    service_options,
)

__all__ = ["explain_file"]


class Format(StrEnum):
    """The format of a plan."""

    text = "text"
    json = "json"
    dot = "dot"
    svg = "svg"


@app.command("explain")
def explain_file(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="An RSP-QL file; - is standard input.", show_default=False
        ),
    ] = None,
    config: ConfigFlag = None,
    output: Annotated[
        Format,
        typer.Option(
            "--format",
            help="text for people, json for programs, dot for Graphviz, svg for a picture.",
        ),
    ] = Format.text,
    graph: Annotated[
        list[str] | None,
        typer.Option(metavar="IRI=FILE", help="The file of a static graph (repeatable)."),
    ] = None,
    function: FunctionsFlag = None,
    service: ServicesFlag = None,
    policy: PolicyFlag = None,
    budget: BudgetFlag = None,
    n: StandByFlag = None,
    max_requests: MaxRequestsFlag = None,
    deadline: DeadlineFlag = None,
    changes: ChangesFlag = None,
    modified: ModifiedFlag = None,
    seed: SeedFlag = None,
    replica: ReplicaFlag = None,
    capacity: CapacityFlag = None,
    operator: OperatorFlag = OperatorChoice.auto,
    arrivals: ArrivalsFlag = None,
    match: MatchFlag = MatchChoice.window,
    attribute_range: RangesFlag = None,
    max_instances: MaxInstancesFlag = None,
) -> None:
    """Print the logical and the physical plan of a query: what is evaluated where, and why."""
    with exit_on_error():
        remote = service_options(
            policy=policy,
            budget=budget,
            n=n,
            max_requests=max_requests,
            deadline=deadline,
            seed=seed,
            replica=replica,
            capacity=capacity,
            arrivals=None if arrivals is None else arrivals.value,
            is_bound=bool(service or changes),
        )
        from rsp_engine.cli.binding import bindings, bound_once
        from rsp_engine.drivers.service_binding import connect
        from rsp_engine.errors import render
        from rsp_engine.grammar import check, tree
        from rsp_engine.grammar.definitions import defined
        from rsp_engine.grammar.files import read_query
        from rsp_engine.grammar.iris import absolute
        from rsp_engine.plan.explain.text import explain, explain_json
        from rsp_engine.plan.options import QueryOptions
        from rsp_engine.plan.planner import plan
        from rsp_engine.plan.services import refuse_unused_services
        from rsp_engine.plan.shapes.incomplete import refuse_undeclared

        [file, *_] = configured_queries(context, [file] if file else None, config)
        text = read_query(file)
        query = check(text, file)
        graphs = bound_once(graph or [], (), query.prefixes, "--graph")
        names = [clause.name for clause in tree.find(query, tree.ServicePattern)]
        known = {name.value for name in names if isinstance(name, tree.Iri)}
        services = bound_once(service or [], known, query.prefixes, "--service")
        feeds = bindings(changes or [], known, query.prefixes, "--changes")
        streams = {window.stream.value for window in query.windows}
        declared = bound_once(attribute_range or [], streams, query.prefixes, "--range")
        properties = modified_by(modified, dict(services), known, query.prefixes)
        options = QueryOptions(
            definitions=defined(function or [], query.prefixes),
            graphs={iri: Path(path) for iri, path in graphs},
            folder=Path(file).parent,
            services={absolute(iri): connect(url) for iri, url in services},
            service_options=remote,
            feeds=frozenset(absolute(iri) for iri, _ in feeds),
            modified={absolute(iri): verb for iri, verb in properties.items()},
            operator=operator.value,
            arrivals=None if arrivals is None else arrivals.value,
            match=match.value,
            ranges={absolute(iri): limits for iri, limits in value_ranges(declared).items()},
            max_instances=max_instances,
        )
        planned = plan(query, text, file, options)
        refuse_unused_services(options.bound_services, planned.physical.services)
        refuse_undeclared(options, [planned.physical.operator])
        for warning in planned.warnings:
            typer.echo(render(warning, text, file, "warning"), err=True)
        if output is Format.json:
            typer.echo(json.dumps(explain_json(planned), ensure_ascii=False, indent=2))
        elif output is Format.dot:
            from rsp_engine.plan.explain.dot import explain_dot

            typer.echo(explain_dot(planned), nl=False)
        elif output is Format.svg:
            from rsp_engine.plan.explain.svg import explain_svg

            typer.echo(explain_svg(planned), nl=False)
        else:
            typer.echo(explain(planned), nl=False)
