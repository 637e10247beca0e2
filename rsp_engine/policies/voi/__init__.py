"""AT-VOI and WSJ-VOI: refresh by the value of information. See docs/voi.md for the idea."""

from __future__ import annotations

from rsp_engine.policies.voi.learner import Learner
from rsp_engine.policies.voi.policy import AT_VOI, WSJ_VOI, Voi

__all__ = ["AT_VOI", "WSJ_VOI", "Learner", "Voi"]
