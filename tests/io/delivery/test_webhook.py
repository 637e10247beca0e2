"""The webhook against a real server: what is sent, and what happens when it is not taken."""

from __future__ import annotations

import json
import re
import time

import pytest

from rsp_engine.io.sinks import FORMATS
from rsp_engine.monitor.metrics import metric_families
from rsp_engine.monitor.run_monitor import RunMonitor
from tests.io.delivery.receivers import WebhookServer, accept, until
from tests.io.delivery.sinks import opened, sent
from tests.io.sinks.samples import GRAPH, RANKED, answer
from tests.replica.test_http_tls import certificate

__all__ = ["certificate"]

pytestmark = pytest.mark.outside

ANSWERS = [answer(RANKED, close) for close in (5000, 10000, 15000)]
IDS = [f"http%3A%2F%2Fexample.org%2Fquery/{c - 5000}/{c}" for c in (5000, 10000, 15000)]


def failing(*replies: tuple[int, dict[str, str]]):
    """Return a behaviour that gives each reply once, and then accepts."""
    left = list(replies)

    def behave(request):
        if not left:
            accept(request)
            return
        status, headers = left.pop(0)
        request.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            request.send_header(name, value)
        request.end_headers()

    return behave


def test_each_window_is_posted_in_order_with_its_id_and_its_type():
    with WebhookServer() as server:
        sink = sent(server.url, *ANSWERS)
    assert [each.id for each in server.received] == IDS
    assert {each.headers["Content-Type"] for each in server.received} == {"application/json"}
    lines = [json.loads(each.body) for each in server.received]
    assert [line.pop("id") for line in lines] == IDS
    assert lines == [json.loads(FORMATS["jsonl"].writer()(each)) for each in ANSWERS]
    assert (sink.status.delivered, sink.status.waiting, sink.status.failures) == (3, 0, 0)


@pytest.mark.parametrize("name", [n for n, f in FORMATS.items() if "SELECT" in f.forms])
def test_a_message_can_be_read_by_itself_in_every_format(name):
    """Also those whose files have a header in front."""
    with WebhookServer() as server:
        sent(f"{server.url}?format={name}", ANSWERS[0], ANSWERS[0])
    first, second = server.received
    alone = str(FORMATS[name].writer()(ANSWERS[0]))
    if name != "jsonl":
        assert first.body == second.body == alone.encode()
    assert first.headers["Content-Type"] == FORMATS[name].media_type
    assert [first.id, second.id] == [IDS[0], f"{IDS[0]}/2"], "two windows with the same edges"


@pytest.mark.parametrize("name", ["nquads", "jelly"])
def test_a_graph_can_be_read_by_itself(name):
    with WebhookServer() as server:
        sent(f"{server.url}?format={name}", *(answer(GRAPH, close) for close in (5000, 5000)))
    assert server.received[0].body == server.received[1].body != b""


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([(500, {})], "the server does not accept the answer: status 500"),
        ([(503, {"Retry-After": "0"})] * 3, "status 503"),
        ([(404, {}), (413, {})], "status 404"),
        ([(401, {})], r"refuses the answer: status 401 \(check RSP_SINK_127_0_0_1_\d+_TOKEN, or"),
        ([(302, {"Location": "http://127.0.0.1:1/"})], "the server redirects .302., which is not"),
    ],
)
def test_what_is_refused_is_posted_again_and_nothing_overtakes_it(replies, said, caplog):
    with WebhookServer(failing(*replies)) as server:
        sink = sent(server.url, *ANSWERS)
    assert [each.id for each in server.received] == IDS
    assert server.requests == 3 + len(replies)
    assert sink.status.failures == len(replies)
    warnings = [record.getMessage() for record in caplog.records]
    assert warnings[-1] == f"{server.url}: answers are delivered again"
    assert len(warnings) == 1 + len({status for status, _ in replies}), "each reason once"
    assert re.search(said, caplog.text)


def test_a_server_may_ask_for_a_pause():
    with WebhookServer(failing((429, {"Retry-After": "1"}))) as server:
        begun = time.monotonic()
        sent(server.url, ANSWERS[0])
    assert time.monotonic() - begun >= 1


def test_a_server_that_never_answers_is_given_up_and_asked_again():
    slow = [True]

    def behave(request):
        if slow.pop() if slow else False:
            time.sleep(1.5)
        accept(request)

    with WebhookServer(behave) as server:
        sink = sent(f"{server.url}?timeout=300ms", *ANSWERS)
        until(lambda: len(server.received) == 4)
    assert sink.status.failures == 1
    assert {each.id for each in server.received} == set(IDS), "one is twice, with its id"
    assert len({(each.id, each.body) for each in server.received}) == 3


def test_a_server_that_sends_its_response_byte_by_byte_is_given_up():
    drips = [True]

    def behave(request):
        if not (drips.pop() if drips else False):
            accept(request)
            return
        request.wfile.write(b"HTTP/1.1 500 no\r\nContent-Length: 100\r\n\r\n")
        for _ in range(20):
            request.wfile.write(b".")
            time.sleep(0.1)
        request.close_connection = True

    with WebhookServer(behave) as server:
        begun = time.monotonic()
        sent(f"{server.url}?timeout=300ms", ANSWERS[0])
    assert time.monotonic() - begun < 2


def test_a_server_that_is_away_at_the_start_and_in_the_middle_gets_everything(caplog):
    server = WebhookServer()
    with opened(server.url, ANSWERS[0]) as sink:
        until(lambda: sink.status.trouble)
        assert sink.status.trouble == "the server cannot be reached: refused connection"
        assert sink.status.lag is not None
        with server:
            until(lambda: len(server.received) == 1)
            until(lambda: sink.status.waiting == 0)
        sink.write(ANSWERS[1])
        until(lambda: sink.status.failures >= 2)
        with server:
            sink.write(ANSWERS[2])
            until(lambda: len(server.received) == 3)
    assert [each.id for each in server.received] == IDS
    assert caplog.text.count("answers are delivered again") == 2


def values(monitor: RunMonitor) -> dict[str, float]:
    """Return the metrics of the only sink."""
    families = metric_families(monitor, lambda text: text)
    samples = (sample for family in families for sample in family.samples)
    return {each.name: each.value for each in samples if "sink" in each.labels}


def test_lag_and_failures_are_metrics():
    monitor, server = RunMonitor(), WebhookServer()
    with opened(server.url, *ANSWERS) as sink:
        monitor.sinks = [sink]
        until(lambda: sink.status.failures)
        found = values(monitor)
        assert found["rsp_undelivered_answers"] == 3
        assert found["rsp_delivered_answers_total"] == 0
        assert found["rsp_delivery_failures_total"] >= 1
        assert found["rsp_delivery_lag_seconds"] > 0
        with server:
            until(lambda: values(monitor)["rsp_delivered_answers_total"] == 3)
        found = values(monitor)
    assert (found["rsp_undelivered_answers"], found["rsp_delivery_lag_seconds"]) == (0, 0)


def test_a_server_that_is_not_trusted_is_told_and_its_certificate_can_be(
    certificate, monkeypatch, caplog
):
    with WebhookServer() as server:
        server.use_tls(certificate)
        url = server.url.replace("http:", "https:")
        assert sent(url, ANSWERS[0], patience=0.5).status.waiting == 1
        names = f"RSP_SINK_127_0_0_1_{server.port}"
        assert f"the server is not trusted ({names}_CA names a file of certificates)" in caplog.text
        monkeypatch.setenv(f"{names}_CA", str(certificate))
        assert sent(url, ANSWERS[0]).status.waiting == 0


def test_credentials_come_from_the_environment_and_are_never_shown(monkeypatch, caplog):
    with WebhookServer(failing((403, {}))) as server:
        monkeypatch.setenv(f"RSP_SINK_127_0_0_1_{server.port}_TOKEN", "t0ps3cret")
        sink = sent(f"{server.url}?key=hush?", ANSWERS[0])
    assert server.received[0].headers["Authorization"] == "Bearer t0ps3cret"
    for text in (caplog.text, sink.name, sink._kind, repr(sink.status)):
        assert "t0ps3cret" not in text
        assert "hush" not in text
