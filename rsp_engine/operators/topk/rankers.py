"""The registry of top-k operators for solutions whose score is known on arrival."""

from __future__ import annotations

from typing import Any, Literal

from rsp_engine.operators.sap.sap import Sap, SapConfig
from rsp_engine.operators.topk.baselines.oracle import Oracle
from rsp_engine.operators.topk.baselines.pretopk import PreTopk
from rsp_engine.operators.topk.baselines.skyband import KSkyband
from rsp_engine.operators.topk.baselines.sma import Sma, SmaConfig
from rsp_engine.operators.topk.contract import TopkOperatorConfig
from rsp_engine.operators.topk.mintopk import MinTopk

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
RANKERS: dict[RankerName, type[Any]] = {
    "MinTopk": MinTopk,
    "PreTopk": PreTopk,
    "Oracle": Oracle,
    "SAP": Sap,
    "SAP (dynamic)": Sap,
    "SAP (equal)": Sap,
    "k-skyband": KSkyband,
    "SMA": Sma,
    "SMA (ring buffer)": Sma,
}
"""Call a class with its configuration to create an operator; `restored` also takes a state."""


def ranker_config(name: RankerName, k: int, slides: int) -> TopkOperatorConfig:
    """Return the configuration of an operator for windows of `slides` slides."""
    match name:
        case "SAP":
            return SapConfig(k, slides)
        case "SAP (dynamic)":
            return SapConfig(k, slides, partitioning="dynamic")
        case "SAP (equal)":
            return SapConfig(k, slides, partitioning="equal")
        case "SMA":
            return SmaConfig(k)
        case "SMA (ring buffer)":
            return SmaConfig(k, index="ring")
        case _:
            return TopkOperatorConfig(k)
