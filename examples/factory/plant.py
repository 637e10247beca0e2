"""The plant: its machines, how they shake, and when their instruments are maintained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

FACTORY = "http://example.org/factory/"
MACHINES = 24
EARLIER_DAYS = 300
"""How many days before the story instruments were maintained; then a second is a day."""
PRODUCTS = "gear valve pump rotor shaft bearing piston nozzle flange turbine seal spring".split()


@dataclass(frozen=True, slots=True)
class Maintenance:
    """An instrument is maintained: so many seconds after the story begins, so many days ago."""

    second: float
    machine: int
    days_ago: int

    def date(self, today: date) -> date:
        """Return the day as people write it."""
        return today - timedelta(days=self.days_ago)


def product(machine: int) -> str:
    """Return what is made with the instrument of a machine."""
    return f"{PRODUCTS[machine % len(PRODUCTS)]}-{machine}"


def vibration(machine: int, second: float) -> float:
    """Return how a machine shakes, in mm/s: slowly up and down, each in its own time."""
    period, phase = 25 + 7 * (machine % 5), 2.4 * machine
    level = 4 + 4 * ((machine * 7) % MACHINES) / MACHINES
    return round(level + 3.5 * math.sin(2 * math.pi * second / period + phase), 2)


def history(seconds: float) -> list[Maintenance]:
    """Return when instruments were maintained: all before the story, and then one at a time.

    It is always the turn of one of those that wait longest. The last second is today.
    """
    chance, last = Random(7), math.ceil(seconds)  # noqa: S311 - a story
    told = [Maintenance(0, m, last + chance.randrange(EARLIER_DAYS)) for m in range(MACHINES)]
    days = {each.machine: each.days_ago for each in told}
    second = 2.0
    while second < seconds:
        waiting = sorted(days, key=days.__getitem__, reverse=True)[:6]
        found = Maintenance(second, chance.choice(waiting), last - int(second))
        days[found.machine] = found.days_ago
        told.append(found)
        second += 2
    return told
