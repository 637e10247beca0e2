"""The envelope of an element that is sent to a broker: a jsonl object with an id and its time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsp_engine.model.streams import Element

__all__ = ["envelope_of"]


def envelope_of(element: Element, identifier: str) -> str:
    """Return an element as a message; subscribers recognise a repeated one by its id."""
    envelope = {
        "id": identifier,
        "timestamp": element.timestamp,
        "format": "ntriples",
        "graph": "".join(f"{triple} .\n" for triple in element.triples),
    }
    return json.dumps(envelope)
