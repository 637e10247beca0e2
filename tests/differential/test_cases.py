"""Cases that are written down: every run of the engine gives the answers of the evaluator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.checking import failures
from tests.differential.evaluation import Case
from tests.differential.expressions import Var
from tests.differential.families.drawing import pattern
from tests.differential.patterns import Window, group_of
from tests.differential.queries import Select
from tests.differential.terms import Blank, Term, ex, typed
from tests.differential.windows import Count, Element, Setting, Time


def element(timestamp: int, subject: Term, value: int) -> Element:
    return Element(timestamp, frozenset({(subject, ex("p"), typed(str(value), "integer"))}))


def check(select: Select, setting: Setting, stream: list[Element], **more: Any) -> None:
    case = Case("cases", 0, select, setting, {"s": [stream]}, **more)
    assert "\n\n".join(map(str, failures(case))) == ""


@pytest.mark.parametrize("bounds", ["(]", "[)"])
def test_an_instant_is_evaluated_once_though_windows_of_two_kinds_close_then(bounds):
    """[ELEMENTS 1] closes at 1, 5, 6, and [RANGE 5ms STEP 5ms] at 5 and 10."""
    setting = Setting((Time("w", "s", 5, 5), Count("x", "s", 1, 1)), bounds=bounds)
    select = Select(("g", "s", "v"), group_of(Window(Var("g"), group_of(pattern("s", "p", "v")))))
    check(select, setting, [element(time, ex("a"), time) for time in (1, 5, 6)])


@pytest.mark.parametrize("other", [10, 2])
def test_equal_elements_have_nodes_of_their_own_though_one_comes_late(other):
    """(0,10] is open until the end    read: 3 9 3    where all elements say `_:x :p 1`."""
    setting = Setting((Time("w", "s", 10, 10), Time("x", "s", other, other)))
    select = Select(("s", "v"), group_of(Window(ex("w"), group_of(pattern("s", "p", "v")))))
    stream = [element(time, Blank(f"x{number}"), 1) for number, time in enumerate((3, 9, 3))]
    check(select, setting, stream)
