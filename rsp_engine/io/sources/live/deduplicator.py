"""Which messages came before: brokers send one again where they do not know that it arrived.

id        by what the sender tells messages apart: the `"id"` of a jsonl envelope, the id of an
          event, or the number of an MQTT packet that is marked as sent again, with its content
content   by topic and payload: of two equal messages the second does not count
none      every message counts
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rsp_engine.io.sources.live.records import Message

__all__ = ["KEY_BYTES", "REMEMBERED", "By", "Deduplicator", "message_digest"]

By = Literal["id", "content", "none"]

REMEMBERED = 50_000
"""So many messages are remembered; what is sent again is sent again soon."""
KEY_BYTES = 16
"""How long a key is: however long ids are, memory is bounded."""


class Deduplicator:
    """The messages that came last.

    >>> from rsp_engine.io.sources.live.records import Message
    >>> seen = Deduplicator("id")
    >>> seen.add(Message(b"x", id="1"))
    >>> Message(b"y", id="1") in seen, Message(b"x", id="2") in seen, Message(b"x") in seen
    (True, False, False)
    """

    def __init__(self, by: By, most: int = REMEMBERED) -> None:
        self._by = by
        self.most = most
        """So many are remembered."""
        self._keys: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, message: Message) -> bool:
        """Tell whether a message came before."""
        return message.may_repeat and self.key(message) in self._keys

    def add(self, message: Message) -> None:
        """Remember a message."""
        if (key := self.key(message)) is not None:
            self.add_key(key)

    def add_key(self, key: bytes) -> None:
        """Remember a message by its key."""
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > self.most:
            self._keys.popitem(last=False)

    def key(self, message: Message) -> bytes | None:
        """Return by what a message is known, in few bytes; nothing if it cannot be."""
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
