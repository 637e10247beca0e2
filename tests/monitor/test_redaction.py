"""Redaction: secrets are replaced, other text is unchanged."""

from __future__ import annotations

import pytest

from rsp_engine.monitor.redaction import Redactor

HIDDEN = {
    "http://ann:pw@e.org/sparql": "http://***@e.org/sparql",
    "https://token@e.org": "https://***@e.org",
    "https://a@b:c@e.org:8443/x": "https://***@e.org:8443/x",
    "http://e.org/q?key=1&room=7#frag": "http://e.org/q?key=***&room=***#***",
    "http://e.org/q?secret": "http://e.org/q?***",
    "http://e.org/feed?token=a?format=jsonl": "http://e.org/feed?token=***?format=***",
    ":s=mqtt://ann:pw@e.org/t": ":s=mqtt://***@e.org/t",
    "http://e.org/s=http://ann:pw@e.org/q": "http://e.org/s=http://***@e.org/q",
    "http://ann:p/w@e.org/": "http://***",
    "<http://ann:pw@e.org/> failed": "<http://***@e.org/> failed",
}
KEPT = [
    "http://e.org:8890/sparql",
    "http://[::1]:8890/sparql",
    "http://e.org/@ann/posts",
    "trades.csv?template=trades.ttl",
    "-?format=jsonl",
    "local[*]",
    "ann@e.org",
]


@pytest.mark.parametrize(("text", "shown"), HIDDEN.items(), ids=list(HIDDEN))
def test_secrets_of_urls_are_hidden(text, shown):
    assert Redactor({})(text) == shown


@pytest.mark.parametrize("text", KEPT)
def test_what_holds_no_secret_is_left_as_it_is(text):
    assert Redactor({"HOME": "local", "RSP_RUNNER": "e.org"})(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "RSP_SERVICE_E_ORG_TOKEN",
        "RSP_SERVICE_E_ORG_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "my_api_key",
        "FEED_SIGNING_KEY",
    ],
)
def test_secrets_of_the_environment_are_hidden_wherever_they_are(name):
    hide = Redactor({name: "can/ary"})
    assert hide("it said can/ary, or can%2Fary") == "it said ***, or ***"
    assert hide.data({"can/ary": ["x can/ary", 7, None, ("can/ary",)]}) == {
        "***": ["x ***", 7, None, ["***"]]
    }
    assert "ary" not in repr(hide)
