"""The addresses of sinks: what is wrong is refused by name, before anything is contacted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.delivery.schemes import plan_sink
from rsp_engine.io.sources.spec import read_spec

if TYPE_CHECKING:
    from rsp_engine.io.sinks.format import ContentForm


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("amqp://host/queue", "there are no sinks of amqp://"),
        ("htps://host/hook", "there are no sinks of htps://\n  hint: did you mean https"),
        ("http://user:hush@host/hook", "an address must not contain a user or a password"),
        ("http://host/hook?tmeout=3s", "there is no option tmeout\n  hint: did you mean timeout"),
        ("http://host/hook?timeout=soon", "the option timeout cannot be 'soon'"),
        ("http://host/hook?timeout=0", "the option timeout must be positive"),
        ("http://host/hook?room=many", "the option room is a number of bytes, not 'many'"),
        ("http://host/hook?format=xml", "there is no format `xml`"),
        ("http://host/hook?format=nquads", "nquads cannot hold the rows that a SELECT answers"),
        ("http://host/hook?format=sparql-xml&times=iso", "sparql-xml has no ISO times"),
        ("http://ho st/hook", "must not contain blanks"),
        ("http:///hook", "it names no host"),
        ("mqtt://host", "it names no topic to send to"),
        ("mqtt://host/a/+", "it names no topic to send to"),
        ("mqtt://host/a?retain=yes", "the option retain cannot be 'yes'"),
        ("mqtt://host/a?version=4", "the option version cannot be '4'"),
        ("kafka://host", "it names no topic"),
        ("kafka://host/t?retain=true", "there is no option retain"),
        ("sparql+http://host/update", "a graph store cannot hold the rows that a SELECT answers"),
    ],
)
def test_a_wrong_address_is_refused_without_its_secrets(url, said):
    with pytest.raises(SinkError) as refused:
        plan_sink(read_spec(url), "jsonl", ["SELECT"])
    assert said in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("graph=not an iri", "the option graph is no IRI"),
        ("mode=append", "the option mode cannot be 'append'"),
        ("format=nquads", "there is no option format"),
    ],
)
def test_a_graph_store_has_options_of_its_own(options, said):
    with pytest.raises(SinkError, match=said):
        plan_sink(read_spec(f"sparql+http://host/update?{options}"), "jsonl", ["CONSTRUCT"])


ALLOWED = ["https://host", "mqtt://broker:1883", "kafkas://k"]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://host/hook", None),
        ("sparql+https://host/update", None),
        ("mqtt://broker/a", None),
        ("kafkas://k:9093/t", None),
        ("http://host/hook", "http://host"),
        ("https://host:444/hook", "https://host:444"),
        ("mqtts://broker/a", "mqtts://broker"),
        ("mqtt://broker:1884/a", "mqtt://broker:1884"),
    ],
)
def test_answers_go_only_to_the_servers_that_are_allowed(url, origin):
    spec = read_spec(url)
    form: ContentForm = "CONSTRUCT"
    if origin is None:
        assert plan_sink(spec, "jsonl", [form], allowed=ALLOWED).name == url
        return
    with pytest.raises(SinkError, match=f"^the origin {origin} is not allowed"):
        plan_sink(spec, "jsonl", [form], allowed=ALLOWED)
