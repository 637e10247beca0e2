"""The contract of ranked objects: what a query that joins a window with remote data ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.sparql.pane_matcher import PaneSolutions
    from rsp_engine.operators.topk.contract import TopkAnswer

__all__ = ["Members", "RankedObjects"]


class Members(NamedTuple):
    """The objects of a window as columns: numbers, join keys, x_S, positions and ends.

    The end of an object is the last window that holds it.
    """

    numbers: Integers
    keys: Integers
    streaming: Floats
    positions: Integers
    ends: Integers


class RankedObjects(Protocol):
    """The objects of open windows, and the operator that ranks them.

    An object has a number and a join key; several objects may share a key.
    """

    @property
    def keys(self) -> Integers:
        """The numbers of the objects that a policy may elect, best first."""

    @property
    def scores(self) -> Floats:
        """Their scores."""

    @property
    def has_all(self) -> bool:
        """Whether every object of the current window is kept."""

    @property
    def ends(self) -> Integers:
        """The last window that holds each of them."""

    def take(self, pane: Pane, matched: PaneSolutions) -> None:
        """Add the solutions of a pane."""

    def settle(self, window: int) -> None:
        """Make a window current, after the last of its panes."""

    def change(self, keys: Integers) -> None:
        """Update the objects of join keys whose remote values have changed."""

    def refill(self, window: int) -> None:
        """Fill the list from all objects that are kept, if one may be missing from the answer."""

    def close(self, window: int) -> TopkAnswer:
        """Close a window; return its ranking."""

    def expire(self, window: int) -> Integers:
        """Forget the objects that end before a window; return join keys that may be gone."""

    def holds(self, keys: Integers) -> Booleans:
        """Return which join keys have an object."""

    def forget(self, keys: Integers) -> None:
        """Forget join keys whose numbers are reused."""

    def join_keys(self) -> Integers:
        """Return the distinct join keys of all objects."""

    def keys_of(self, numbers: Sequence[int]) -> Integers:
        """Return the join keys of objects."""

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        """Return the largest x_S of the objects of each join key."""

    def streamed(self, numbers: Integers) -> tuple[Floats, Integers]:
        """Return x_S of objects, and their positions: of equal scores, the later ranks first."""

    def bindings(self, numbers: Sequence[int], now: int) -> list[Mapping[str, Term]]:
        """Return the variables of objects that are bound by the stream."""

    def terms(self, numbers: Sequence[int], now: int) -> Sequence[Term | None]:
        """Return x_S of objects as terms; None if unbound."""

    def members(self) -> Members:
        """Return the objects of the current window that are kept."""

    def state(self) -> StateData:
        """Return the state as plain data, without the replica, which is saved on its own."""

    def restore(self, state: StateData) -> None:
        """Restore a saved state. The replica must be restored before."""
