"""Families of datasets: how remote values evolve where they do not evolve as in AcquaTop.

The values of AcquaTop (`dfc`, the family `paper`) are drawn anew at each change, and all users
change at the same rate. Each family here departs from that in one way:

    walks          a change adds a random step to the value
    bursts         a user changes rarely, or for about eight rounds at nearly each; values drawn in
                   a burst are spread four times as wide
    days           users change nine times as often by day as by night; a day has 48 rounds
    heavy-tails    values are drawn from a distribution without a mean: a few are huge
    rising         values are counts, which only rise
    churn          users come and go: who is mentioned often changes all the time
    correlated     users change in groups of twenty, in the same direction
    reverting      a change takes a value halfway back to the user's own level, and adds noise

CH is the mean number of changes at an invocation, as in AcquaTop. In all families except `bursts`,
`days` and `correlated`, users change at unequal rates: of four users, one changes at 0.1 times the
mean rate, one at 0.4, one at 1 and one at 2.5 times, but at most in 19 of 20 rounds; so a CH of 80
gives fewer changes than 80. Each user has a fraction of its own, so no two users have the same
value, while a user may return to an old one.

Random numbers are whole numbers only, as in `dfc`: the same seed gives the same dataset on every
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from rsp_engine.experiments.datasets.dataset import EventTable
from rsp_engine.experiments.datasets.dfc import ALL_CHANGES, Dice, Evolved, check_whole, evolve

if TYPE_CHECKING:
    from rsp_engine.model.arrays import Booleans, Integers

__all__ = ["FAMILIES", "Family", "evolve_family"]

Family = Literal[
    "paper",
    "walks",
    "bursts",
    "days",
    "heavy-tails",
    "rising",
    "churn",
    "correlated",
    "reverting",
]
FAMILIES: tuple[Family, ...] = get_args(Family)

_ALL = 1_000_000  # chances are whole numbers out of a million
_UNIT = 10**9  # values are whole numbers of billionths
_SHARES = (10, 40, 100, 250)  # percent of the mean rate, by quarter of the users
_MOST_OFTEN = 950_000
_BURST_ROUNDS = 8
_DAY_ROUNDS = 48
_BY_DAY, _BY_NIGHT = 180, 20  # percent of the mean rate
_GROUP = 20
_LEAST, _LARGEST = 25, 5_000_000  # of heavy tails; half of the values are below 50


class _Evolution(NamedTuple):
    """Whole values of each user at the start, and after each round (a row each)."""

    initial: Integers
    values: Integers


_Rule = Callable[[int, int, int, Dice], _Evolution]
"""Maps rounds, users, the mean chance of a change (of `_ALL`) and dice to an evolution."""


def evolve_family(
    family: Family, recorded: Integers, times: Integers, ch: int, dice: Dice
) -> Evolved:
    """Return how values evolve in a family, given the report time of each round and user.

    `recorded` is what `evolve` needs for the family `paper`; the others ignore it.
    """
    if family == "paper":
        return evolve(recorded, times, ch, dice)
    check_whole("ch", ch, 1, ALL_CHANGES)
    rounds, users = times.shape
    invocations, reported_users = np.unique(times, return_counts=True)
    chance = min(ch * len(invocations) * _ALL // times.size, _ALL * 19 // 20)
    whole, values = _RULES[family](rounds, users, chance, dice)
    own = dice.order(users)
    round_of, user_of = np.nonzero(np.diff(values, axis=0, prepend=whole[None, :]))
    at = times[round_of, user_of]
    order = np.argsort(at, kind="stable")
    changed = (values[round_of, user_of] * _UNIT + own[user_of]) / _UNIT
    changes = EventTable(at[order], user_of[order], changed[order])
    return Evolved((whole * _UNIT + own) / _UNIT, changes, invocations, reported_users)


def _walks(rounds: int, users: int, chance: int, dice: Dice) -> _Evolution:
    has_changed = _occur(_unequal(users, chance, dice), rounds, users, dice)
    return _walk(5 * _normal(dice, users), np.where(has_changed, _normal(dice, rounds, users), 0))


def _bursts(rounds: int, users: int, chance: int, dice: Dice) -> _Evolution:
    # The share of time b in bursts gives the mean chance: 0.9 b + 0.1 (1 - b) chance = chance.
    share = min(9 * chance * _ALL // (9 * _ALL - chance), _ALL * 9 // 10)
    enter = min(share * _ALL // (_BURST_ROUNDS * (_ALL - share)), _ALL)
    begins, ends = (_occur(c, rounds, users, dice) for c in (enter, _ALL // _BURST_ROUNDS))
    in_burst = np.empty((rounds, users), dtype=np.bool_)
    now = _occur(share, 1, users, dice)[0]
    for row in range(rounds):
        now = np.where(now, ~ends[row], begins[row])
        in_burst[row] = now
    has_changed = _occur(np.where(in_burst, 9 * _ALL // 10, chance // 10), rounds, users, dice)
    drawn = _normal(dice, rounds, users) * np.where(in_burst, 4, 1)
    return _redraw(_normal(dice, users), has_changed, drawn)


def _days(rounds: int, users: int, chance: int, dice: Dice) -> _Evolution:
    by_day = np.arange(rounds) % _DAY_ROUNDS < _DAY_ROUNDS // 2
    chances = np.minimum(chance * np.where(by_day, _BY_DAY, _BY_NIGHT) // 100, _MOST_OFTEN)
    has_changed = _occur(chances[:, None], rounds, users, dice)
    return _redraw(_normal(dice, users), has_changed, _normal(dice, rounds, users))


def _heavy_tails(rounds: int, users: int, chance: int, dice: Dice) -> _Evolution:
    has_changed = _occur(_unequal(users, chance, dice), rounds, users, dice)
    drawn = _LARGEST // (1 + dice.below(_LARGEST // _LEAST, rounds + 1, users))
    return _redraw(drawn[0], has_changed, drawn[1:])


def _rising(rounds: int, users: int, chance: int, dice: Dice) -> _Evolution:
    has_changed = _occur(_unequal(users, chance, dice), rounds, users, dice)
    steps = 1 + dice.below(20, rounds, users) // (1 + dice.below(4, rounds, users))
    return _walk(dice.below(300, users), np.where(has_changed, steps, 0))


def _churn(rounds: int, users: int, chance: int, dice: Dice) -> _Evolution:
    has_changed = _occur(_unequal(users, chance, dice), rounds, users, dice)
    return _redraw(_normal(dice, users), has_changed, _normal(dice, rounds, users))


def _correlated(rounds: int, users: int, chance: int, dice: Dice) -> _Evolution:
    groups = -(-users // _GROUP)
    group = dice.order(users) // _GROUP
    # Four of five members take part in a change of their group.
    changes = _occur(min(chance * 5 // 4, _ALL), rounds, groups, dice)[:, group]
    has_changed = changes & _occur(_ALL * 4 // 5, rounds, users, dice)
    steps = _normal(dice, rounds, groups)[:, group] + _normal(dice, rounds, users) // 4
    return _walk(5 * _normal(dice, users), np.where(has_changed, steps, 0))


def _reverting(rounds: int, users: int, chance: int, dice: Dice) -> _Evolution:
    has_changed = _occur(_unequal(users, chance, dice), rounds, users, dice)
    level, noise = 2 * _normal(dice, users), 2 * _normal(dice, rounds, users)
    values = np.empty((rounds, users), dtype=np.int64)
    now = initial = level + 2 * _normal(dice, users)
    for row in range(rounds):
        now = np.where(has_changed[row], (level + now) // 2 + noise[row], now)
        values[row] = now
    return _Evolution(initial, values)


_RULES: Mapping[Family, _Rule] = {
    "walks": _walks,
    "bursts": _bursts,
    "days": _days,
    "heavy-tails": _heavy_tails,
    "rising": _rising,
    "churn": _churn,
    "correlated": _correlated,
    "reverting": _reverting,
}


def _unequal(users: int, chance: int, dice: Dice) -> Integers:
    """Return the chance of each user: a quarter of them has each share of the mean."""
    shares = np.array(_SHARES)[dice.order(users) % len(_SHARES)]
    chances: Integers = np.minimum(shares * chance // 100, _MOST_OFTEN)
    return chances


def _occur(chance: int | Integers, rounds: int, users: int, dice: Dice) -> Booleans:
    """Return in which round an event of a given chance happens to which user."""
    happens: Booleans = dice.below(_ALL, rounds, users) < chance
    return happens


def _normal(dice: Dice, *shape: int) -> Integers:
    """Draw whole numbers that are nearly normal, with mean 0 and deviation 1,001."""
    drawn: Integers = dice.below(1001, 12, *shape).sum(axis=0) - 6000
    return drawn


def _walk(initial: Integers, steps: Integers) -> _Evolution:
    """Add up the steps of each user."""
    return _Evolution(initial, initial + np.cumsum(steps, axis=0))


def _redraw(initial: Integers, has_changed: Booleans, drawn: Integers) -> _Evolution:
    """Give a user the number drawn in the last round in which it changed."""
    rounds = np.arange(1, len(drawn) + 1)[:, None]
    last = np.maximum.accumulate(np.where(has_changed, rounds, 0), axis=0)
    every = np.concatenate((initial[None, :], drawn))
    return _Evolution(initial, np.take_along_axis(every, last, axis=0))
