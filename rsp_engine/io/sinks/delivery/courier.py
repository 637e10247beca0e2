"""Couriers: they take deliveries to the other side, over one protocol each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Courier", "Delivery", "NotDelivered"]


class Delivery(NamedTuple):
    """A serialized answer on its way."""

    id: str
    """Identifies query and window: a delivery that is repeated has the same id."""
    body: bytes


class NotDelivered(Exception):  # noqa: N818 - it describes the delivery, and the deliverer retries
    """The other side did not acknowledge some deliveries; the message is the reason."""

    def __init__(self, reason: str, delivered: int = 0, pause: float | None = None) -> None:
        """Set the reason, and how many of the first deliveries were acknowledged nevertheless.

        The other side may ask to wait for `pause` seconds.
        """
        super().__init__(reason)
        self.delivered = delivered
        self.pause = pause


class Courier(Protocol):
    """A connection to the other side. It connects when it is needed, also again."""

    most: int
    """How many deliveries it takes at a time."""

    def deliver(self, deliveries: Sequence[Delivery]) -> None:
        """Deliver in order, and return once all are acknowledged; raise `NotDelivered` if not."""

    def close(self) -> None:
        """Disconnect; a later delivery connects again."""
