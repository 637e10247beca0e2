"""Refresh policies: each elects, within a budget, the keys of the replica to refresh."""

from __future__ import annotations

from rsp_engine.policies.policy import Policy, Proposer, RankedPolicy, elected_set, in_order
from rsp_engine.policies.policy_file import is_policy_file
from rsp_engine.policies.registry import POLICIES, policy_named, register, split_parameters

__all__ = [
    "POLICIES",
    "Policy",
    "Proposer",
    "RankedPolicy",
    "elected_set",
    "in_order",
    "is_policy_file",
    "policy_named",
    "register",
    "split_parameters",
]
