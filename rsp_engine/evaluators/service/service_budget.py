"""The budget of a service, divided among the queries that are evaluated at the same instant.

    1  the ledger says how many keys may be sent at this instant
    2  these are dealt to the evaluations by the weights of their queries; of what is left, each
       gets one key in turn, and the turns go on at the next instant
    3  evaluations that know what a refresh is worth (AT-VOI) put their parts together, apart from
       what they need for cold keys: the keys with the largest value are fetched, which is the sum
       of the values for all queries that need the key, times their weights
    4  what an evaluation leaves goes to the next one, in the order of registration; what is left in
       the end is saved

(Refresh by the value of information: docs/explanation/voi.md. Turns: smooth weighted round-robin, a
credit for each query that grows by its weight, and pays for a turn with the sum of all weights.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rsp_engine.replica.key_ledger import KeyLedger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.evaluators.physical_plan import ServicePlan
    from rsp_engine.evaluators.service.shared_replica import SharedReplica
    from rsp_engine.model.arrays import Floats, Integers
    from rsp_engine.model.quantities import Rate
    from rsp_engine.model.state import StateData

__all__ = ["Grant", "ServiceBudget"]


class Bid(NamedTuple):
    """What refreshes of known keys are worth to a query, and how many keys are cold."""

    replica: SharedReplica
    keys: Integers
    values: Floats
    cold: int


class Grant(NamedTuple):
    """How many keys a clause may fetch, and how many of them may be cold; None for the half."""

    keys: int
    cold: int | None = None


@dataclass(slots=True)
class _Account:
    """The part of an evaluation: what it may still fetch, and what it was given and has spent."""

    query: str
    weight: float
    most: int | None
    """The most keys that it may fetch; None without a limit."""
    clauses: int
    """How many of its clauses have not fetched yet."""
    left: int = 0
    bid: Bid | None = None
    cold: int = 0
    is_over: bool = False
    given: int = 0
    spent: int = 0


@dataclass(slots=True, eq=False)
class ServiceBudget:
    """The budget of one service. Queries without a weight weigh 1."""

    service: str
    rate: Rate
    weights: Mapping[str, float] = field(default_factory=dict)
    keeper: object = None
    """The refresh whose state includes that of the budget: the first one."""
    ledger: KeyLedger = field(init=False)
    _credits: dict[str, float] = field(init=False, default_factory=dict)
    _now: int = field(init=False, default=0)
    _accounts: dict[str, _Account] = field(init=False, default_factory=dict)
    _carried: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.ledger = KeyLedger(self.rate)

    def begin(self, now: int, due: Mapping[str, Sequence[ServicePlan]]) -> None:
        """Deal the keys of an instant to the queries that are due at it, with their clauses."""
        room = self.ledger.advance(now, min(plan.step for plans in due.values() for plan in plans))
        self._now = now
        self._accounts = {query: self._account(query, plans) for query, plans in due.items()}
        self._carried = self._deal(room)

    def _account(self, query: str, plans: Sequence[ServicePlan]) -> _Account:
        limits = [most for plan in plans if (most := plan.most_keys) is not None]
        most = max(limits) if len(limits) == len(plans) else None
        return _Account(query, self.weights.get(query, 1.0), most, len(plans))

    def _deal(self, room: int) -> int:
        """Deal keys by weights and turns; return how many nobody may fetch."""
        while room:
            able = [each for each in self._accounts.values() if _may_have_more(each)]
            total = sum(each.weight for each in able)
            parts = [_at_most(each, int(room * each.weight / total)) for each in able]
            for each, part in zip(able, parts, strict=True):
                each.left += part
                room -= part
            if not able:
                return room
            if not any(parts):
                self._take_turn(able).left += 1
                room -= 1
        return 0

    def _take_turn(self, able: Sequence[_Account]) -> _Account:
        """Return the evaluation whose turn it is."""
        marks = self._credits
        for each in able:
            marks[each.query] = marks.get(each.query, 0.0) + each.weight
        first = max(able, key=lambda each: marks[each.query])  # of equals, the first
        marks[first.query] -= sum(each.weight for each in able)
        return first

    def bid(self, query: str, replica: SharedReplica, worth: tuple[Integers, Floats]) -> None:
        """Offer what refreshes of keys are worth to a query, before any evaluation fetches."""
        account = self._accounts[query]
        keys, values = worth
        account.bid = Bid(replica, keys, values * account.weight, 0)

    def need(self, query: str, cold: int) -> None:
        """Set how many cold keys an evaluation needs: they get up to half of its part."""
        account = self._accounts[query]
        account.cold = min(max(account.left // 2, 1), account.left, cold)

    def grant(self, query: str) -> Grant:
        """Return what the next clause of an evaluation may fetch; evaluations come in order."""
        account = self._accounts[query]
        self._end_before(account)
        available = account.left + self._carried
        cold = None
        if account.bid is not None:
            cold = account.cold
            available = cold + self._of_worth(account)
        if account.most is not None:
            available = min(available, account.most - account.spent)
        keys = -(-max(available, 0) // account.clauses)
        account.clauses -= 1
        account.given = account.spent + keys
        return Grant(keys, cold)

    def _end_before(self, account: _Account) -> None:
        """Pass what earlier evaluations have left on to this one."""
        for each in self._accounts.values():
            if each is account:
                return
            if not each.is_over:
                each.is_over = True
                self._carried += each.left
                each.left = 0

    def _of_worth(self, account: _Account) -> int:
        """Return how many keys of an evaluation are among those with the largest value."""
        bidders = self._bidders()
        pool = self._carried + sum(each.left - each.cold for each in bidders)
        values, are_own = self._values(bidders, account)
        if pool <= 0 or not len(values):
            return max(pool, 0)
        if pool >= len(values):
            # Whatever is worth a fetch is fetched: the rest may go to cold keys.
            own_room = self._carried + account.left - account.cold
            return max(int(np.count_nonzero(are_own)), own_room)
        least = np.partition(values, len(values) - pool)[len(values) - pool]
        is_above = values > least
        ties = pool - int(np.count_nonzero(is_above))
        own_ties = int(np.count_nonzero((values == least) & are_own))
        return int(np.count_nonzero(is_above & are_own)) + min(ties, own_ties)

    def _bidders(self) -> list[_Account]:
        """Return the evaluations to come that know what a refresh is worth to them."""
        return [a for a in self._accounts.values() if a.bid is not None and not a.is_over]

    def _values(self, bidders: Sequence[_Account], account: _Account) -> tuple[Floats, Floats]:
        """Return the value of each key that is not fetched yet, and whether it is a candidate."""
        replicas = {id(each.bid.replica): each.bid.replica for each in bidders if each.bid}
        values, are_own = [np.empty(0)], [np.empty(0, dtype=np.bool_)]
        for replica in replicas.values():
            bids = [e.bid for e in bidders if e.bid is not None and e.bid.replica is replica]
            keys = np.unique(np.concatenate([bid.keys for bid in bids]))
            keys = keys[~replica.are_asked(keys, self._now)]
            values.append(_summed(bids, keys))
            own = account.bid
            is_own = own is not None and own.replica is replica
            are_own.append(
                np.isin(keys, own.keys) if is_own and own else np.zeros(len(keys), dtype=np.bool_)
            )
        return np.concatenate(values), np.concatenate(are_own)

    def elsewhere(self, query: str, keys: Integers) -> Floats | None:
        """Return what refreshes are worth to the queries after this one, in its own measure."""
        account = self._accounts[query]
        if account.bid is None:
            return None
        replica = account.bid.replica
        bids = [
            each.bid
            for each in self._bidders()
            if each is not account and each.bid is not None and each.bid.replica is replica
        ]
        return _summed(bids, keys) / account.weight if bids else None

    def spend(self, query: str, keys: int) -> None:
        """Charge the keys of a fetch, before it is sent."""
        account = self._accounts[query]
        account.spent += keys
        self.ledger.charge(self._now, keys)
        for each in (account, None, *(b for b in self._bidders() if b is not account)):
            if each is None:
                part = min(keys, self._carried)
                self._carried -= part
            else:
                part = min(keys, each.left)
                each.left -= part
            keys -= part

    def stats(self, query: str) -> dict[str, int]:
        """Return how many keys an evaluation was given, and how many it has fetched."""
        account = self._accounts[query]
        return {"given": account.given, "spent": account.spent}

    def state(self) -> StateData:
        """Return the ledger and the turns, as plain data, between two instants."""
        return {"ledger": self.ledger.state(), "credits": dict(sorted(self._credits.items()))}

    def restore(self, state: StateData) -> None:
        """Restore a saved state."""
        self.ledger.restore(state["ledger"])
        self._credits = dict(state["credits"])


def _may_have_more(account: _Account) -> bool:
    return account.most is None or account.left < account.most


def _at_most(account: _Account, keys: int) -> int:
    return keys if account.most is None else min(keys, account.most - account.left)


def _summed(bids: Sequence[Bid], keys: Integers) -> Floats:
    """Return the sum of the values that bids have for each key."""
    size = int(keys.max(initial=-1)) + 1
    total = np.zeros(max(size, *(int(bid.keys.max(initial=-1)) + 1 for bid in bids)))
    for bid in bids:
        total[bid.keys] += bid.values
    return total[keys]
