"""What a query that joins a window with remote data ranks: its objects, whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.model.arrays import Booleans, Floats, Integers
    from rsp_engine.model.state import StateData
    from rsp_engine.model.terms.term import Term
    from rsp_engine.model.windows import Pane
    from rsp_engine.operators.sparql.pane_matcher import Matched
    from rsp_engine.operators.topk.contract import TopkAnswer

__all__ = ["Members", "RankedObjects"]


class Members(NamedTuple):
    """The objects of a window as columns: numbers, join keys, x_S, when they came, and their ends.

    An end is the last window that holds an object.
    """

    numbers: Integers
    keys: Integers
    streaming: Floats
    positions: Integers
    ends: Integers


class RankedObjects(Protocol):
    """Objects of open windows, and the operator that ranks them.

    An object has a number and a join key; several may have the same key.
    """

    @property
    def keys(self) -> Integers:
        """The numbers of the objects among which a policy may elect, best first."""

    @property
    def scores(self) -> Floats:
        """Their scores."""

    @property
    def ends(self) -> Integers:
        """The last window for which each of them counts."""

    def take(self, pane: Pane, matched: Matched) -> None:
        """Take the solutions of a pane."""

    def settle(self, window: int) -> None:
        """Look at a window, all panes of which were taken."""

    def change(self, keys: Integers) -> None:
        """Move the objects of join keys whose remote values are others now."""

    def close(self, window: int) -> TopkAnswer:
        """Close a window, and return its ranking."""

    def expire(self, window: int) -> Integers:
        """Forget objects that do not live until a window; return join keys that may be gone."""

    def holds(self, keys: Integers) -> Booleans:
        """Tell which join keys an object has."""

    def forget(self, keys: Integers) -> None:
        """Forget join keys whose numbers go to others."""

    def join_keys(self) -> Integers:
        """Return the join keys of all objects that live, each once."""

    def keys_of(self, numbers: Sequence[int]) -> Integers:
        """Return the join keys of objects."""

    def best_streaming(self, keys: Sequence[int]) -> Floats:
        """Return the largest x_S of the objects of each join key."""

    def streamed(self, numbers: Integers) -> tuple[Floats, Integers]:
        """Return x_S of objects, and their positions: of equals, the later one is the better."""

    def bindings(self, numbers: Sequence[int], now: int) -> list[Mapping[str, Term]]:
        """Return what the stream says of objects: the variables that it binds."""

    def terms(self, numbers: Sequence[int], now: int) -> Sequence[Term | None]:
        """Return x_S of objects as the terms that they are; nothing where there is none."""

    def members(self) -> Members:
        """Return all objects of the window that was looked at last."""

    def state(self) -> StateData:
        """Return all there is to know beside the replica, as plain data, to be restored from."""

    def restore(self, state: StateData) -> None:
        """Go on from a state; the replica is restored already."""
