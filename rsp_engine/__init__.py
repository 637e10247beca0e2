"""An RDF stream processing engine for continuous top-k queries in RSP-QL.

`Engine` is imported when it is first asked for, so that `rsp validate` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsp_engine.engine import Engine

__all__ = ["Engine", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "Engine":
        from rsp_engine.engine import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
