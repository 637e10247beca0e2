"""An RDF stream processing engine for continuous top-k queries in RSP-QL.

Public names are imported on first access, so that `rsp validate` starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rsp_engine.client import Client
    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.drivers.spark.data_frame import as_spark
    from rsp_engine.engine import Engine
    from rsp_engine.errors import RspError
    from rsp_engine.model.answers import Answer, Boolean, Graph, Interval, Row, Solutions
    from rsp_engine.model.results import as_arrow
    from rsp_engine.policies.policy import Policy, RankedPolicy

__all__ = [
    "Answer",
    "Boolean",
    "Client",
    "Engine",
    "Graph",
    "Interval",
    "Policy",
    "Query",
    "RankedPolicy",
    "Row",
    "RspError",
    "Solutions",
    "__version__",
    "as_arrow",
    "as_spark",
]

__version__ = "0.2.0"

_MODULES = {
    "rsp_engine.client": ("Client",),
    "rsp_engine.engine": ("Engine",),
    "rsp_engine.errors": ("RspError",),
    "rsp_engine.model.answers": ("Answer", "Boolean", "Graph", "Interval", "Row", "Solutions"),
    "rsp_engine.model.results": ("as_arrow",),
    "rsp_engine.policies.policy": ("Policy", "RankedPolicy"),
    "rsp_engine.drivers.registered_query": ("Query",),
    "rsp_engine.drivers.spark.data_frame": ("as_spark",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
