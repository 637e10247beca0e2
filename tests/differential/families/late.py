"""Elements that arrive late or out of order, with and without a delay of the watermark."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.differential.evaluation import Case
from tests.differential.expressions import Var
from tests.differential.families import windows
from tests.differential.families.drawing import (
    S,
    V,
    count_window,
    cut,
    elements,
    is_so,
    order,
    pattern,
    pool,
    setting,
    sources,
    time_window,
    times,
    triples,
)
from tests.differential.families.groups import grouped
from tests.differential.patterns import Window, group_of
from tests.differential.queries import Select
from tests.differential.terms import ex

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from tests.differential.windows import Element


def draw(chance: Random, seed: int) -> Case:
    window = count_window(chance, of_triples=True) if is_so(chance, 0.1) else time_window(chance)
    chosen = setting(chance, (window,), max_delay=chance.choice((0, 0, 1, 2, 3, 6)))
    if is_so(chance, 0.2):
        chosen = replace(chosen, windows=(*chosen.windows, time_window(chance, "x")))
    at = times(chance, chosen, chance.randint(2, 14))
    found = triples(chance, pool(chance, ("few", "few", "decimals", "texts")), ("p", "q"), "abc", 8)
    stream = out_of_order(chance, elements(chance, at, found))
    select = chance.choice((_ranked, _ranked, _grouped, windows.one_window))(chance)
    return Case("late", seed, select, chosen, {"s": sources(chance, stream)})


def out_of_order(chance: Random, found: Sequence[Element]) -> list[Element]:
    """Draw an order of reading: some elements come much later than others of their time."""
    reach = chance.choice((1, 3, 6, 12))
    late = [chance.randint(0, reach) if is_so(chance, 0.4) else 0 for _ in found]
    arriving = sorted(zip(found, late, strict=True), key=lambda a: a[0].timestamp + a[1])
    return [element for element, _ in arriving]


def _ranked(chance: Random) -> Select:
    where = group_of(Window(ex("w"), group_of(pattern("s", "p", "v"))))
    conditions = [order(chance, V)]
    if is_so(chance, 0.2):
        conditions.append(order(chance, S))
    return Select(("s", "v"), where, order_by=tuple(conditions), **cut(chance))


def _grouped(chance: Random) -> Select:
    where = group_of(Window(ex("w"), group_of(pattern("s", Var("k"), "v"))))
    return grouped(chance, where, chance.choice((("s",), ("k",))))
