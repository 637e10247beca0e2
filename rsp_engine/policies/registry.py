"""The registry of policies by name, extensible with a user's own, also by policy files."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rsp_engine.errors import BindingError
from rsp_engine.policies.asm import AT_ASM, EXACT
from rsp_engine.policies.bsm import AT_BSM
from rsp_engine.policies.cgm import AT_CGM, WSJ_CGM
from rsp_engine.policies.filter import AT_FILTER, WSJ_FILTER
from rsp_engine.policies.lds import AT_LDS, WSJ_LDS
from rsp_engine.policies.lru import AT_LRU, WSJ_LRU
from rsp_engine.policies.policy_file import is_policy_file, object_of_file
from rsp_engine.policies.rnd import AT_RND, WSJ_RND
from rsp_engine.policies.tsm import AT_TSM
from rsp_engine.policies.voi import AT_ECR, AT_VOI, WSJ_ECR, WSJ_VOI, Voi
from rsp_engine.policies.wbm import AT_WBM, WSJ_WBM
from rsp_engine.policies.wst import WST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rsp_engine.policies.policy import Policy

__all__ = ["POLICIES", "policy_named", "register", "split_parameters"]

_ALL: tuple[Policy, ...] = (
    WST,
    WSJ_RND,
    WSJ_LRU,
    WSJ_WBM,
    AT_TSM,
    AT_BSM,
    AT_ASM,
    AT_LRU,
    AT_WBM,
    AT_RND,
    EXACT,
    AT_VOI,
    WSJ_VOI,
    AT_CGM,
    WSJ_CGM,
    AT_LDS,
    WSJ_LDS,
    AT_FILTER,
    WSJ_FILTER,
    AT_ECR,
    WSJ_ECR,
)

POLICIES: Mapping[str, Policy] = MappingProxyType({policy.name: policy for policy in _ALL})
"""The built-in policies. The mapping is immutable: `register` returns a new one."""


def policy_named(text: str, among: Mapping[str, Policy] = POLICIES) -> Policy:
    """Return the policy `NAME`, `NAME+parameter=value+...` or `path/to/file.py:NAME`.

    Raise `ValueError` if there is none, and `BindingError` if a file does not have it.

    >>> policy_named("AT-TSM").summary
    'the top of the list'
    >>> policy_named("AT-VOI+wp=4+answer=replica").wp
    4.0
    >>> policy_named("AT-TSM+wp=4")
    Traceback (most recent call last):
    ValueError: AT-TSM has no parameters
    """
    name, parameters = (text, []) if text in among else split_parameters(text)
    policy = among.get(name)
    if policy is None and is_policy_file(name):
        policy = _of_file(name, among)
    if policy is None:
        raise ValueError(f"there is no policy {name}")
    if not parameters:
        return policy
    if not isinstance(policy, Voi):
        raise ValueError(f"{name} has no parameters")
    pairs = [parameter.partition("=")[::2] for parameter in parameters]
    return policy.having(dict(pairs))


def split_parameters(text: str) -> tuple[str, list[str]]:
    """Return the name of a policy, and what follows it after each `+`.

    >>> split_parameters("AT-VOI+wp=4"), split_parameters("c++/mine.py:MINE+signal")
    (('AT-VOI', ['wp=4']), ('c++/mine.py:MINE', ['signal']))
    """
    file, mark, rest = text.rpartition(":") if is_policy_file(text) else ("", "", text)
    name, *parameters = rest.split("+")
    return file + mark + name, parameters


def _of_file(text: str, among: Mapping[str, Policy]) -> Policy:
    """Return the policy of a file; raise `BindingError` if it is none."""
    policy: Policy = object_of_file(text)
    try:
        register(policy, among)
    except ValueError as reason:
        raise BindingError(f"{text} is not a policy of your own: {reason}") from None
    return policy


def register(policy: Policy, among: Mapping[str, Policy] = POLICIES) -> Mapping[str, Policy]:
    """Return the policies with one more.

    Raise `ValueError` if it does not have the members of `Policy`, or if its name is taken.

    >>> from rsp_engine.policies.policy import RankedPolicy
    >>> from rsp_engine.policies.tsm import tsm
    >>> mine = RankedPolicy("WSJ-TSM", "the top of the window", "my notes", "window", tsm)
    >>> sorted(set(register(mine)) - set(POLICIES))
    ['WSJ-TSM']
    >>> register(mine, register(mine))
    Traceback (most recent call last):
    ValueError: there is a policy WSJ-TSM already
    """
    for text in ("name", "summary", "section"):
        if not isinstance(getattr(policy, text, None), str) or not getattr(policy, text):
            raise ValueError(f"a policy must have a {text}: {policy!r}")
    if getattr(policy, "proposer", "") not in ("window", "list", None):
        raise ValueError(f"the proposer of {policy.name} must be 'window', 'list' or None")
    if not isinstance(getattr(policy, "is_bounded", None), bool):
        raise ValueError(f"the policy {policy.name} must say whether it is_bounded")
    if not callable(getattr(policy, "elect", None)):
        raise ValueError(f"the policy {policy.name} has no function elect")
    if policy.name in among:
        raise ValueError(f"there is a policy {policy.name} already")
    return MappingProxyType({**among, policy.name: policy})
