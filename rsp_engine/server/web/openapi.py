"""The description of the API (OpenAPI 3.1)."""

from __future__ import annotations

from functools import cache
from typing import Any

from rsp_engine import __version__

__all__ = ["description"]


@cache
def description() -> dict[str, Any]:
    """Return the description."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "rsp-engine", "version": __version__},
        "paths": {},
    }
