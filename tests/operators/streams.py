"""Triples and elements that the tests of the operators are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st
from pyoxigraph import NamedNode, Triple

if TYPE_CHECKING:
    from rsp_engine.model.windows import Bounds

EX = "http://example.org/"
BOUNDS: tuple[Bounds, ...] = ("(]", "[)")


def triple(name: str) -> Triple:
    """Return a triple that is told by a letter."""
    return Triple(NamedNode(EX + name), NamedNode(f"{EX}p"), NamedNode(EX + name))


A, B, C, D = map(triple, "abcd")


class Taken(NamedTuple):
    """An element as a scan gets it: the watermark is that of the moment."""

    timestamp: int
    triples: tuple[Triple, ...]
    watermark: int


@st.composite
def held_up(draw: st.DrawFn) -> list[Taken]:
    """Draw elements under a watermark that rises with those of other streams."""
    parts = st.lists(st.sampled_from([A, B, C, D]), max_size=2).map(tuple)
    found = draw(st.lists(st.tuples(st.integers(0, 12), parts, st.integers(0, 4)), max_size=12))
    watermark, taken = 0, []
    for timestamp, triples, rise in found:
        watermark += rise
        taken.append(Taken(timestamp, triples, watermark))
    return taken


@st.composite
def streams(draw: st.DrawFn, max_delay: int = 0) -> list[Taken]:
    """Draw elements; without a delay they come in the order of time."""
    found = draw(
        st.lists(
            st.tuples(
                st.integers(-8, 30), st.lists(st.sampled_from([A, B, C, D]), max_size=3).map(tuple)
            ),
            max_size=12,
        )
    )
    if not max_delay:
        found.sort(key=lambda element: element[0])
    watermark, taken = -10_000, []
    for timestamp, triples in found:
        watermark = max(watermark, timestamp - max_delay)
        taken.append(Taken(timestamp, triples, watermark))
    return taken
