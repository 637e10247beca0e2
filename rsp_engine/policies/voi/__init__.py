"""AT-VOI and its kin: policies that learn from refreshes. See docs/explanation/voi.md."""

from __future__ import annotations

from rsp_engine.policies.voi.changed_value import MODELS
from rsp_engine.policies.voi.learner import Learner
from rsp_engine.policies.voi.policy import AT_ECR, AT_VOI, WSJ_ECR, WSJ_VOI, Voi

__all__ = ["AT_ECR", "AT_VOI", "MODELS", "WSJ_ECR", "WSJ_VOI", "Learner", "Voi"]
