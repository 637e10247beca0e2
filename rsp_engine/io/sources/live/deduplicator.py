"""Deduplication of messages: a broker repeats a message whose acknowledgement it did not get.

The option `dedup` selects how a duplicate is recognised:

    id        by the sender's id: the `"id"` of a jsonl envelope, the id of an event, or the packet
              identifier and content of an MQTT message that is marked as a duplicate
    content   by topic and payload: an equal message is a duplicate
    none      not at all
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rsp_engine.io.sources.live.records import Message

__all__ = ["KEY_BYTES", "REMEMBERED", "Deduplicator", "DuplicateRule", "message_digest"]

DuplicateRule = Literal["id", "content", "none"]

REMEMBERED = 50_000
"""Default number of messages that are remembered: duplicates follow soon after the original."""
KEY_BYTES = 16
"""The size of a deduplication key: a digest, so that memory does not depend on ids."""


class Deduplicator:
    """A bounded set of the most recent messages.

    >>> from rsp_engine.io.sources.live.records import Message
    >>> seen = Deduplicator("id")
    >>> seen.add(Message(b"x", id="1"))
    >>> Message(b"y", id="1") in seen, Message(b"x", id="2") in seen, Message(b"x") in seen
    (True, False, False)
    """

    def __init__(self, by: DuplicateRule, most: int = REMEMBERED) -> None:
        self._by = by
        self.most = most
        """The number of messages that are remembered."""
        self._keys: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, message: Message) -> bool:
        """Return whether a message is a duplicate."""
        return message.may_repeat and self.key(message) in self._keys

    def add(self, message: Message) -> None:
        """Remember a message."""
        if (key := self.key(message)) is not None:
            self.add_key(key)

    def add_key(self, key: bytes) -> None:
        """Remember a message by its key; forget the oldest if there are too many."""
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > self.most:
            self._keys.popitem(last=False)

    def key(self, message: Message) -> bytes | None:
        """Return the deduplication key of a message; `None` if it has none."""
        match self._by:
            case "id":
                return _digest(message.id.encode(errors="replace")) if message.id else None
            case "content":
                return message_digest(message)
            case "none":
                return None


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


def message_digest(message: Message) -> bytes:
    """Return a digest of the topic and the payload of a message."""
    digest = hashlib.blake2b(message.topic.encode(errors="replace"), digest_size=KEY_BYTES)
    digest.update(b"\0")
    digest.update(message.payload)
    return digest.digest()
