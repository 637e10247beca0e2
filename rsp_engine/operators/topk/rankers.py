"""The registry of top-k operators for solutions whose score is known on arrival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rsp_engine.lazy_registry import LazyRegistry, importer
from rsp_engine.operators.topk.contract import TopkOperatorConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RANKERS", "RankerName", "ranker_config"]

RankerName = Literal[
    "MinTopk",
    "PreTopk",
    "Oracle",
    "SAP",
    "SAP (dynamic)",
    "SAP (equal)",
    "k-skyband",
    "SMA",
    "SMA (ring buffer)",
]
_SAP = importer("rsp_engine.operators.sap.sap", "Sap")
_SMA = importer("rsp_engine.operators.topk.baselines.sma", "Sma")

RANKERS: Mapping[str, type[Any]] = LazyRegistry(
    {
        "MinTopk": importer("rsp_engine.operators.topk.mintopk", "MinTopk"),
        "PreTopk": importer("rsp_engine.operators.topk.baselines.pretopk", "PreTopk"),
        "Oracle": importer("rsp_engine.operators.topk.baselines.oracle", "Oracle"),
        "SAP": _SAP,
        "SAP (dynamic)": _SAP,
        "SAP (equal)": _SAP,
        "k-skyband": importer("rsp_engine.operators.topk.baselines.skyband", "KSkyband"),
        "SMA": _SMA,
        "SMA (ring buffer)": _SMA,
    }
)
"""Call a class with its configuration to create an operator; `restored` also takes a state."""


def ranker_config(name: RankerName, k: int, slides: int) -> TopkOperatorConfig:
    """Return the configuration of an operator for windows of `slides` slides."""
    # As the operators, their configurations are imported when they are used.
    match name:
        case "SAP" | "SAP (dynamic)" | "SAP (equal)":
            from rsp_engine.operators.sap.sap import SapConfig

            if name == "SAP":
                return SapConfig(k, slides)
            partitioning: Literal["dynamic", "equal"] = (
                "dynamic" if name == "SAP (dynamic)" else "equal"
            )
            return SapConfig(k, slides, partitioning=partitioning)
        case "SMA" | "SMA (ring buffer)":
            from rsp_engine.operators.topk.baselines.sma import SmaConfig

            return SmaConfig(k) if name == "SMA" else SmaConfig(k, index="ring")
        case _:
            return TopkOperatorConfig(k)
