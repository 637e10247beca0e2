"""The address of a publisher: refused by name, and never with a password in the message."""

from __future__ import annotations

import pytest

from rsp_engine.errors import SourceError
from rsp_engine.io.sinks.publisher import Publisher
from rsp_engine.io.sources.spec import read_spec


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("mqtt://user:hush@localhost/t?foo=1", "must not contain a user or a password"),
        ("mqtt://localhost/t?foo=1", "there is no option foo"),
        ("http://localhost/t?version=5", "streams are replayed to MQTT brokers"),
        ("mqtt://localhost/a/+?version=5", "it names no topic to send to"),
    ],
)
def test_a_wrong_address_is_refused_without_its_secrets(address, reason):
    with pytest.raises(SourceError, match=reason) as refused:
        Publisher(read_spec(address))
    assert "hush" not in str(refused.value)
