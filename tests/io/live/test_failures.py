"""Failures of live sources: they are logged, other input is answered, and the source recovers."""

from __future__ import annotations

import logging
import subprocess
import time

import pytest

from tests.io.live.engine_thread import EX, Running, element, publish, until
from tests.io.live.servers import Mosquitto, free_port, mosquitto, needs_mosquitto, password_file

pytestmark = needs_mosquitto

START = 1_700_000_000_000
ONE = f"""PREFIX : <{EX}>
REGISTER RSTREAM :q AS SELECT ?v FROM NAMED WINDOW :w ON STREAM :a [RANGE 1s STEP 1s]
WHERE {{ WINDOW :w {{ ?s :v ?v }} }}"""
TWO = f"""PREFIX : <{EX}>
REGISTER RSTREAM :q AS SELECT ?v
FROM NAMED WINDOW :w ON STREAM :a [RANGE 1s STEP 1s]
FROM NAMED WINDOW :x ON STREAM :b [RANGE 1s STEP 1s]
WHERE {{ {{ WINDOW :w {{ ?s :v ?v }} }} UNION {{ WINDOW :x {{ ?s :v ?v }} }} }}"""


def log_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "rsp"]


def test_a_broker_that_is_away_at_the_start_is_waited_for(tmp_path, caplog):
    broker = Mosquitto(tmp_path)
    with Running(ONE, {"a": f"{broker.url}/t?format=turtle"}).listening() as run:
        until(lambda: log_lines(caplog))
        time.sleep(1)
        assert len(log_lines(caplog)) == 1, "it is logged once"
        assert (
            "the broker cannot be reached: Connection refused; trying again" in log_lines(caplog)[0]
        )
        broker.start()
        try:
            broker.wait_for_subscriber("t")
            publish(broker.port, [("t", element(0.5, 1)), ("t", element(2.5, 2))])
            until(lambda: run.values() == [[1]])
        finally:
            broker.stop()
        assert log_lines(caplog)[1].endswith("connected again")
    assert run.values() == [[1], [2]], "the end of the stream closes its windows"


def test_wrong_credentials_are_reported_without_showing_them(tmp_path, caplog, monkeypatch):
    users = password_file(tmp_path, "engine", "right")
    with mosquitto(tmp_path, f"allow_anonymous false\npassword_file {users}") as broker:
        prefix = f"RSP_SOURCE_127_0_0_1_{broker.port}"
        monkeypatch.setenv(f"{prefix}_USER", "engine")
        monkeypatch.setenv(f"{prefix}_PASSWORD", "wr0ng-s3cret")
        with Running(ONE, {"a": f"{broker.url}/t?format=turtle"}).listening() as run:
            until(lambda: log_lines(caplog))
            assert (
                f"(check {prefix}_USER and {prefix}_PASSWORD); trying again" in log_lines(caplog)[0]
            )
            monkeypatch.setenv(f"{prefix}_PASSWORD", "right")
            broker.wait_for_subscriber("t")
            messages = [("t", element(0.5, 1)), ("t", element(2.5, 2))]
            publish(broker.port, messages, ("engine", "right"))
            until(lambda: run.values() == [[1]])
    assert "s3cret" not in caplog.text


def test_bad_messages_are_set_aside_and_the_others_are_answered(tmp_path):
    """Garbage, nothing, ten megabytes, no time, two times, and a clock that is hours ahead."""
    now = int(time.time())
    two_times = element(1.4, 5, base=now) + element(1.5, 6, base=now)
    bad: list[str | bytes] = [
        "garbage",
        b"\xff\xfe\x00",
        "# " + "x" * (10 << 20),
        f"<{EX}s> <{EX}v> 7 .",
        two_times,
        element(3 * 3600, 9, base=now),
    ]
    messages: list[tuple[str, str | bytes]] = [("t/1", element(-60, 1, base=now))]
    messages += [("t/2", payload) for payload in bad]
    messages += [("t/3", element(-59, 2, base=now)), ("t/3", element(-50, 3, base=now))]
    with (
        mosquitto(tmp_path) as broker,
        Running(ONE, {"a": f"{broker.url}/t/+?format=turtle"}).listening() as run,
    ):
        broker.wait_for_subscriber("t/+")
        publish(broker.port, messages)
        until(lambda: run.values() == [[1], [2]])
    reasons = [(letter.position, letter.reason) for letter in run.letters]
    assert [position for position, _ in reasons] == [2, 3, 4, 5, 6, 7]
    assert reasons[2][1].startswith("large: the message has 10485762 bytes, more than 4194304")
    assert len(run.letters[2].raw) == 1000
    assert reasons[3][1] == "the time is unclear: nothing is a prov:generatedAtTime in it"
    assert reasons[4][1].startswith("the time is unclear: more than one thing")
    assert reasons[5][1].startswith("future: its time is ")


def test_a_stream_that_is_silent_does_not_hold_up_another(tmp_path):
    with mosquitto(tmp_path) as broker:
        streams = {n: f"{broker.url}/{n}?format=turtle&idle=700ms" for n in "ab"}
        with Running(TWO, streams).listening() as run:
            for name in "ab":
                broker.wait_for_subscriber(name)
            first = [("a", element(0.5, 1)), ("b", element(0.6, 2)), ("b", element(1.5, 3))]
            publish(broker.port, first)
            until(lambda: run.engine.counts.elements == 3)
            publish(broker.port, [("a", element(1.7, 4)), ("a", element(3.5, 5))])
            until(lambda: len(run.answers) >= 2)
            assert sorted(run.values()[0]) == [1, 2]
            publish(broker.port, [("b", element(3.6, 6))])
            until(lambda: run.engine.counts.elements == 6)
    assert sorted(run.values()[-1]) == [5, 6], "one that is heard again counts again"


def test_a_source_that_does_not_answer_can_be_stopped(caplog):
    url = f"ws://127.0.0.1:{free_port()}/feed"
    started = time.monotonic()
    with Running(ONE, {"a": url}).listening():
        until(lambda: log_lines(caplog))
    assert time.monotonic() - started < 15
    assert "the server cannot be reached" in log_lines(caplog)[0]


# paho does not close the socket of a failed handshake, so Python warns about it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tls_is_used_and_whom_to_trust_comes_from_the_environment(tmp_path, caplog, monkeypatch):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    made += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(  # noqa: S603 - our own certificate
        [*made, "-out", str(certificate), "-keyout", str(key)], check=True, capture_output=True
    )
    key.chmod(0o644)
    more = f"allow_anonymous true\ncertfile {certificate}\nkeyfile {key}"
    with mosquitto(tmp_path, more) as broker:
        url = f"mqtts://127.0.0.1:{broker.port}/t?format=turtle"
        with Running(ONE, {"a": url}).listening():
            until(lambda: log_lines(caplog))
        prefix = f"RSP_SOURCE_127_0_0_1_{broker.port}"
        assert "the broker is not trusted" in log_lines(caplog)[0]
        assert f"{prefix}_CA names a file" in log_lines(caplog)[0]
        monkeypatch.setenv(f"{prefix}_CA", str(certificate))
        with Running(ONE, {"a": url}).listening():
            broker.wait_for_subscriber("t")


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.WARNING, logger="rsp")


def test_a_recorded_stream_is_read_to_its_end_beside_one_that_is_silent(tmp_path, monkeypatch):
    """The driver reads the file a few elements at a time, and no messages arrive meanwhile."""
    monkeypatch.setattr("rsp_engine.drivers.local._ITEMS", 3)
    quads = [f"<{EX}s{n}> <{EX}v> {n} <{EX}g/{START + 500 * n}> ." for n in range(20)]
    (tmp_path / "b.trig").write_text("\n".join(_as_trig(quad) for quad in quads))
    with mosquitto(tmp_path) as broker:
        streams = {"a": f"{broker.url}/a?format=turtle&idle=300ms", "b": str(tmp_path / "b.trig")}
        with Running(TWO, streams).listening() as run:
            until(lambda: run.engine.counts.elements == 20, 15)


def _as_trig(quad: str) -> str:
    *triple, graph, _ = quad.split()
    return f"{graph} {{ {' '.join(triple)} }}"
