"""What queries are bound to, besides streams, and how an engine is set up with it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.engine import Engine

__all__ = ["NO_FOLDER", "Bindings", "set_up"]

NO_FOLDER = Path(os.devnull)
"""The folder of texts that come from requests: nothing is in it."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """What queries are bound to, besides streams, and their options."""

    options: Mapping[str, Any] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    modified: Mapping[str, str] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)
    functions: Sequence[str] = ()
    ranges: Mapping[str, Sequence[float]] = field(default_factory=dict)


def set_up(engine: Engine, bindings: Bindings, prefixes: Mapping[str, str]) -> None:
    """Bind what queries need, before they are registered."""
    for text in bindings.functions:
        engine.define(text, prefixes)
    for iri, path in bindings.graphs.items():
        engine.graph(f"<{iri}>", path)
    for iri, url in bindings.services.items():
        verb = bindings.modified.get(iri)
        engine.service(f"<{iri}>", url, modified=None if verb is None else f"<{verb}>")
    for iri, (low, high) in bindings.ranges.items():
        engine.range(f"<{iri}>", low, high)
