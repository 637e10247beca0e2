"""The flags of `rsp run` and `rsp explain`: the options of the engine, and those declared here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rsp_engine.model.option import DurationLike, Options, option
from rsp_engine.options import (
    RankingOptions,
    RunOptions,
    ServiceOptions,
    TimeStyle,
    WindowOptions,
)

__all__ = ["BindingFlags", "OutputFlags", "RunFlags"]


@dataclass(frozen=True, kw_only=True)
class BindingFlags(Options):
    """The flags that bind the names of queries. Each can be repeated."""

    title: ClassVar[str] = "Bindings"

    stream: Sequence[str] = option(
        (),
        "A stream and its source: a path, - or a URL, with ?format=... if the name does not show it"
        " (repeatable; several sources of one stream are merged by time).",
        metavar="IRI=SOURCE",
    )
    graph: Sequence[str] = option(
        (), "The file of a static graph (repeatable).", metavar="IRI=FILE"
    )
    function: Sequence[str] = option(
        (),
        "A function that queries call, as an expression over its parameters (repeatable).",
        metavar="'F(?a, ?b) = ...'",
    )
    service: Sequence[str] = option(
        (),
        "A SERVICE of the query and the SPARQL endpoint behind it, or a file with its data: RDF, or"
        " a history of its values as CSV or JSON Lines (repeatable).",
        metavar="IRI=URL",
    )
    changes: Sequence[str] = option(
        (),
        "A SERVICE and a stream of its changes: new triples, valid from their time on"
        " (repeatable).",
        metavar="IRI=SOURCE",
    )
    modified: Sequence[str] = option(
        (),
        "A SERVICE and the property that states when a key was last modified (repeatable).",
        metavar="IRI=PROPERTY",
    )
    range: Sequence[str] = option(
        (),
        "A stream and the range of its attribute, for ranked queries over several streams; 0,1 by"
        " default (repeatable).",
        metavar="IRI=LOW,HIGH",
    )
    allow: Sequence[str] = option(
        (),
        "A server that may be contacted, and no other (repeatable); by default all that are bound.",
        metavar="URL",
    )


@dataclass(frozen=True, kw_only=True)
class OutputFlags(Options):
    """The flags of answers, and of what is told about a run."""

    title: ClassVar[str] = "Output"

    output_format: str = option(
        "jsonl",
        "jsonl, csv, tsv, sparql-json, sparql-xml, nquads or jelly.",
        metavar="NAME",
        word="format",
    )
    times: TimeStyle = option(
        "ms", "How answers of jsonl, csv and tsv write times: milliseconds since 1970, or ISO 8601."
    )
    output: Sequence[str] = option(
        (),
        "Where to write answers: a path, -, or the URL of a sink, such as mqtt://host/topic"
        " (repeatable); by default standard output.",
        metavar="PATH",
    )
    delivery_wait: DurationLike = option(
        30_000,
        "How long the end of a run waits for a sink that acknowledges nothing, such as 1m.",
        unit="ms",
        minimum=0,
    )
    dead_letters: str | None = option(
        None,
        "Where to write malformed and late input, as jsonl.",
        metavar="FILE",
        unset="it is only counted",
    )
    quiet: bool = option(
        False, "Print no warnings, no summary and no runner: only answers and errors."
    )
    snapshot: str | None = option(
        None,
        "Print the K best pairs of the last RANGE, such as 3,1m, on standard error: when the run"
        " ends, and with the next answer after SIGUSR1 (rankings of pairs).",
        metavar="K,RANGE",
        unset="no snapshots",
    )
    dry_run: bool = option(
        False, "Print the plan and the requests that would be sent; read and send nothing."
    )
    live_for: DurationLike | None = option(
        None,
        "How long to listen to live streams, such as 1m.",
        unit="ms",
        unset="no limit",
        minimum=0,
        word="for",
    )
    live: bool | None = option(
        None,
        "Show the answers as a table that changes in place.",
        unset="on a terminal, unless --format or --output is set",
    )
    metrics_port: int | None = option(
        None,
        "Serve metrics for Prometheus on this port of this computer; 0 takes a free one.",
        metavar="PORT",
        unset="no metrics",
        minimum=0,
        maximum=65535,
    )
    manifest: str | None = option(
        None,
        "Where to write the run's options and outcome, as JSON.",
        metavar="FILE",
        unset="nowhere",
    )


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """The flags of `rsp run` and `rsp explain`, one field for each group in help."""

    bindings: BindingFlags
    windows: WindowOptions
    ranking: RankingOptions
    services: ServiceOptions
    run: RunOptions
    output: OutputFlags
