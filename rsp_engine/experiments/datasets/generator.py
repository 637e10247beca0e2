"""The generator of datasets like those of AcquaTop: the same seed gives the same dataset.

    mentions      400 users and 9,462 s. The weight of a user is 1 / (rank + 23)^2, a long tail.
                  Some minutes are busy. A quarter of the mentions follow another mention of the
                  same user within 150 s, as replies do.
    invocations   About every minute all users are reported, at most 100 at a time. Some of these
                  reports are split in two, and each part counts as an invocation: 702 in all. The
                  small parts are why the mean of Table 3 is below its median.
    dfc           See `dfc`. The recorded dfc is drawn from the distribution of the recording: most
                  often 0. In the other families, values evolve otherwise: see `families`.

The paper says that a window has 26, 38 and 59 mentions (minimum, median, maximum). In its program
these are pairs of a user and a part of the window (the slide of 60 s, or the remaining 40 s) in
which the user is mentioned at all. The generator is calibrated to this reading, and to the full
counts of the recorded stream, whose median is 47.

As in the paper, all datasets of a seed have the same mentions. The five datasets of each CH,
numbered from 1, have different changes; datasets with the same number differ in CH alone.

    python -m rsp_engine.experiments.datasets.generator [--seed N]

prints the statistics of a seed's datasets beside those of the paper.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rsp_engine.experiments.datasets.dataset import Dataset
from rsp_engine.experiments.datasets.dfc import Dice, check_whole
from rsp_engine.experiments.datasets.families import FAMILIES, evolve_family
from rsp_engine.experiments.datasets.profile import CHS, DATASETS, print_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.experiments.datasets.families import Family
    from rsp_engine.model.arrays import Floats, Integers

__all__ = ["PAPER_SCALE", "Scale", "generate", "generated_suite"]

_MOST = 2**31 - 1  # of seeds and numbers
_MOST_VALUES = 5_000_000  # of dfc, since all of them are in memory at once
_FLATTEN = 23  # the larger, the less the first users stand out
_WEIGHT = 10**12  # weights are whole numbers, scaled by this
_BLOCK = 120_000  # ms with one rate
_QUIET, _BUSY = 10, 17  # the two rates, whose ratio alone matters ...
_BUSY_EVERY = 20  # ... one block in this many is busy
_PLACES = 64  # between two neighbouring mentions
_SPREAD = 40  # a mention is shifted by up to this many mentions
_FOLLOWING = 4  # one mention in this many follows another one ...
_FOLLOWS_WITHIN = 150_000  # ... within this many ms
_ROUND = 64_000  # ms, about
_MOST_REPORTED = 100  # users per invocation
_SLOT = 2_500  # ms that an invocation takes at most
_SPLIT = (110, 592)  # of 592 reports, 110 are split in two
_RECORDED = {0: 941, 1: 39, -1: 15, 2: 3, -3: 1, 5: 1}
"""How often a value of dfc occurs in 1,000 recorded ones."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of a dataset, by default that of the paper. The duration is in milliseconds."""

    users: int = 400
    duration: int = 9_462_000
    mentions: int = 4_550

    def __post_init__(self) -> None:
        check_whole("users", self.users, 1, 100_000)
        check_whole("duration", self.duration, 10_000, 86_400_000)
        check_whole("mentions", self.mentions, 1, 10_000_000)
        if self.users * self.rounds > _MOST_VALUES:
            most = _MOST_VALUES // self.rounds
            raise ValueError(f"users must be at most {most} for a duration of {self.duration}")

    @property
    def rounds(self) -> int:
        """How often each user is reported."""
        return max((self.duration + _ROUND // 2) // _ROUND, 1)


PAPER_SCALE = Scale()


def generate(
    seed: int = 0,
    ch: int = 20,
    number: int = 1,
    scale: Scale = PAPER_SCALE,
    family: Family = "paper",
) -> Dataset:
    """Return the `number`-th dataset of the test case DS-CH, with `ch` changes per invocation.

    >>> made = generate(seed=7, ch=5)
    >>> made.name, len(made.mention_times), len(made.windows), len(made.invocations)
    ('DS-CH-5 1, seed 7', 4550, 150, 702)
    >>> made.mentioned(0, 100_000).sum().item()
    47
    """
    check_whole("seed", seed, 0, _MOST)
    check_whole("number", number, 1, _MOST)
    times, users = _mentions(scale, Dice(seed, 0), has_churn=family == "churn")
    report_times = _report_times(scale, Dice(seed, 1))
    place = FAMILIES.index(family)
    dice = Dice(seed, 2, number, *((place,) if place else ()))
    recorded = _recorded(len(report_times) + 1, scale.users, dice)
    evolved = evolve_family(family, recorded, report_times, ch, dice)
    return Dataset(
        f"{'DS' if family == 'paper' else family}-CH-{ch} {number}, seed {seed}",
        0,
        scale.duration,
        np.arange(scale.users),
        times,
        users,
        *evolved,
        is_whole=_fits_decimals(evolved[0]) and _fits_decimals(evolved[1].values),
    )


def _fits_decimals(values: Floats) -> bool:
    """Return whether decimals with nine fractional digits have no more than float64 can hold."""
    return bool((np.abs(values) < 10_000).all())


def generated_suite(
    seed: int = 0, scale: Scale = PAPER_SCALE
) -> Iterator[tuple[int, tuple[Dataset, ...]]]:
    """Yield each CH of the paper with its five datasets."""
    for ch in CHS:
        yield ch, tuple(generate(seed, ch, n, scale) for n in range(1, DATASETS + 1))


def _mentions(scale: Scale, dice: Dice, *, has_churn: bool) -> tuple[Integers, Integers]:
    """Return the times of mentions, in order, and their users.

    With churn, the weights move from user to user, once around all of them.
    """
    first = scale.mentions - scale.mentions // _FOLLOWING
    times = _times(scale.duration, first, dice)
    cumulated = np.cumsum(_WEIGHT // (np.arange(scale.users) + _FLATTEN) ** 2)
    ranks = np.searchsorted(cumulated, dice.below(int(cumulated[-1]), first), side="right")
    if has_churn:
        ranks = (ranks + times * scale.users // scale.duration) % scale.users
    users = dice.order(scale.users)[ranks]
    followed = dice.below(first, scale.mentions - first)
    later = times[followed] + dice.below(_FOLLOWS_WITHIN, len(followed))
    # Mentions after the end wrap to the start. Times start at 1, since windows open at 0.
    times = np.concatenate((times, later)) % scale.duration + 1
    users = np.concatenate((users, users[followed]))
    order = np.lexsort((users, times))
    return times[order], users[order]


def _times(duration: int, count: int, dice: Dice) -> Integers:
    """Return times from 0 on, spread nearly evenly at the rate of each block."""
    starts = np.arange(0, duration, _BLOCK)
    rates = np.full(len(starts), _QUIET)
    rates[dice.order(len(starts))[: len(starts) // _BUSY_EVERY]] = _BUSY
    lengths = np.minimum(_BLOCK, duration - starts)
    ends = np.cumsum(rates * lengths)
    places = np.arange(count) * _PLACES + dice.below(_SPREAD * _PLACES, count)
    work = places % (count * _PLACES) * int(ends[-1]) // (count * _PLACES)
    block = np.searchsorted(ends, work, side="right")
    times: Integers = starts[block] + lengths[block] - 1 - (ends[block] - 1 - work) // rates[block]
    return times


def _report_times(scale: Scale, dice: Dice) -> Integers:
    """Return the time at which each user is reported in each round."""
    rounds = scale.rounds
    reports = -(-scale.users // _MOST_REPORTED)  # of a round
    period = scale.duration // rounds
    slot = min(_SLOT, period // (reports + 1))
    begin = np.arange(rounds)[:, None] * period + np.arange(reports) * slot
    begin += 1 + dice.below(slot - 1, rounds, reports)
    split = np.full(begin.size, _MOST_REPORTED)
    parted = dice.order(begin.size)[: begin.size * _SPLIT[0] // _SPLIT[1]]
    # The sizes of the parts are evenly spread, so that the quartiles do not depend on the seed.
    split[parted] = 1 + np.arange(len(parted)) * (_MOST_REPORTED - 1) // max(len(parted), 1)
    report, place = np.divmod(np.arange(scale.users), _MOST_REPORTED)
    # The second part of a report is a millisecond later.
    is_later = place >= split.reshape(begin.shape)[:, report]
    return begin[:, report] + is_later


def _recorded(rounds: int, users: int, dice: Dice) -> Integers:
    """Draw values of dfc from the distribution of the recording."""
    ends = np.cumsum(list(_RECORDED.values()))
    kinds = np.searchsorted(ends, dice.below(int(ends[-1]), rounds, users), side="right")
    values: Integers = np.array(list(_RECORDED))[kinds]
    return values


def main(arguments: Sequence[str]) -> int:
    """Print the statistics of a seed's datasets beside those of the paper."""
    parser = argparse.ArgumentParser(prog="python -m rsp_engine.experiments.datasets.generator")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the datasets")
    try:
        made = dict(generated_suite(parser.parse_args(arguments).seed))
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    print_tables(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
