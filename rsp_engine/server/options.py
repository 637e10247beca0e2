"""The options of `rsp serve`, each declared once, as those of runs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rsp_engine.model.option import DurationLike, Options, option

__all__ = ["ServeOptions"]


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """The options of the service: where it listens, what requests may open, and its limits."""

    title: ClassVar[str] = "Service"

    data: str = option("rsp-data", "The folder of streams, queries and answers.", metavar="FOLDER")
    host: str = option("127.0.0.1", "The address to listen on.", metavar="ADDRESS")
    port: int = option(
        8321, "The port to listen on; 0 takes a free one.", metavar="PORT", minimum=0, maximum=65535
    )
    allow: Sequence[str] = option(
        (),
        "A server that requests may name, as a service or as the source of a stream (repeatable).",
        metavar="URL",
    )
    files: Sequence[str] = option(
        (),
        "A folder whose files requests may name, as static graphs or recorded streams"
        " (repeatable).",
        metavar="FOLDER",
    )
    trusted_host: Sequence[str] = option(
        (),
        "A name by which clients may call this server, besides localhost and addresses"
        " (repeatable).",
        metavar="NAME",
    )
    certificate: str | None = option(
        None, "The certificate of HTTPS.", metavar="FILE", unset="HTTP is served"
    )
    key: str | None = option(None, "The key of the certificate.", metavar="FILE", unset="no key")
    largest_body: int = option(
        16 << 20, "How many bytes the body of a request may have.", unit="bytes", minimum=1
    )
    largest_query: int = option(
        1 << 20, "How many bytes a query and its bindings may have.", unit="bytes", minimum=1
    )
    memory: int = option(
        2 << 30, "How much memory the process of a group may take.", unit="bytes", minimum=1 << 26
    )
    evaluation: DurationLike = option(
        60_000, "How long the evaluation of a window may take.", unit="ms", minimum=100
    )
    keep_bytes: int = option(
        1 << 30, "How much of each stream is kept, unless it says so.", unit="bytes", minimum=4096
    )
    keep_time: DurationLike = option(
        "7d", "How long elements are kept, unless their stream says so.", unit="ms", minimum=1000
    )
    keep_answers: int = option(
        64 << 20, "How much of the answers of each query is kept.", unit="bytes", minimum=4096
    )
