"""Metrics: Prometheus scrapes what the run monitor reports."""

from __future__ import annotations

import socket
import sys

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families
from pyoxigraph import Literal, NamedNode, Quad, Store
from typer.testing import CliRunner

from rsp_engine import Engine
from rsp_engine.cli import app
from rsp_engine.errors import BindingError
from rsp_engine.model.extras import install_command
from rsp_engine.monitor.metrics import COUNTERS, GAUGES, HISTOGRAMS, serve_metrics
from rsp_engine.monitor.run_monitor import RunMonitor
from rsp_engine.replica.endpoints.endpoint import FetchResult
from tests.documents import page

pytestmark = pytest.mark.outside

QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :q AS SELECT ?room ?floor (?t + ?floor AS ?score)
FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :temperature ?t } SERVICE :plan { ?room :floor ?floor } }
ORDER BY DESC(?score) LIMIT 3
"""
ROOM, FLOOR = "http://example.org/{}", NamedNode("http://example.org/floor")


def element(at: int, room: str) -> tuple[int, str]:
    return at, f"<{ROOM.format(room)}> <http://example.org/temperature> 20 ."


ELEMENTS = [element(1_000, "a"), element(2_000, "b"), element(11_000, "a"), element(500, "c")]
BAD = (12_000, "no turtle")


LABELS = ("query", "service", "outcome", "cause", "reason", "le")


class Failing:
    """An endpoint whose snapshot has only `a`, and whose fetches time out."""

    def fetch(self, keys: object, limits: object, now: int) -> FetchResult:
        return FetchResult({}, 1, {"time-out": 1})

    def snapshot(self, limits: object, now: int) -> FetchResult:
        return FetchResult({(NamedNode(ROOM.format("a")),): ({"floor": Literal(1)},)}, 1)

    def close(self) -> None:
        pass


def run(watch: RunMonitor, endpoint: object) -> None:
    engine = Engine(policy="AT-TSM", budget=5)
    engine.watched_by(watch)
    engine.service("http://example.org/plan", endpoint)  # type: ignore[arg-type]
    engine.register(QUERY)
    engine.bind("http://example.org/s", [*ELEMENTS, BAD])
    for number, _ in enumerate(engine.run()):
        if number == 0 and isinstance(endpoint, Store):  # a moves upstairs between two windows
            endpoint.update(
                "DELETE DATA { <http://example.org/a> <http://example.org/floor> 0 } ; "
                "INSERT DATA { <http://example.org/a> <http://example.org/floor> 9 }"
            )


def rooms() -> Store:
    store = Store()
    for place, room in enumerate("ab"):
        store.add(Quad(NamedNode(ROOM.format(room)), FLOOR, Literal(place)))
    return store


def read(watch: RunMonitor) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the samples of a scrape, by name and labels."""
    with serve_metrics(0, watch, str) as port:
        text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=30).text
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in LABELS if name in sample.labels)
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_counters_and_histograms_are_what_the_run_says():
    watch = RunMonitor()
    run(watch, rooms())
    samples, name = read(watch), "http://example.org/q"
    assert samples["rsp_elements_total"] == {(): 4}
    assert samples["rsp_late_elements_total"] == {(): 1}
    assert samples["rsp_dead_letters_total"] == {("late",): 1, ("malformed",): 1}
    assert samples["rsp_windows_total"] == {(name,): 2}
    assert samples["rsp_rows_total"] == {(name,): 3}
    assert samples["rsp_budget_spent_total"] == {(name,): 3}
    where = name, "http://example.org/plan"
    assert samples["rsp_refreshed_keys_total"] == {
        (*where, "changed"): 1,
        (*where, "unchanged"): 2,
        (*where, "failed"): 0,
    }
    assert samples["rsp_evaluation_seconds_count"] == {(name,): 2}
    assert samples["rsp_evaluation_seconds_sum"][name,] > 0
    assert samples["rsp_remote_age_seconds_bucket"][name, "0.0"] == 3
    assert samples["rsp_remote_age_seconds_bucket"][name, "+Inf"] == 3


def test_what_fails_is_counted_by_its_cause_and_values_grow_old():
    watch = RunMonitor()
    run(watch, Failing())
    samples, name = read(watch), "http://example.org/q"
    assert samples["rsp_faults_total"] == {(name, "time-out"): 2}
    outcomes = samples["rsp_refreshed_keys_total"]
    assert outcomes[name, "http://example.org/plan", "failed"] == 3
    assert samples["rsp_cold_misses_total"] == {(name,): 1}
    ages = samples["rsp_remote_age_seconds_bucket"]
    assert (ages[name, "0.0"], ages[name, "5.0"], ages[name, "60.0"]) == (0, 0, 2)


def test_the_port_is_on_this_computer_only_and_closed_after_the_run():
    with serve_metrics(0, RunMonitor(), str) as port:
        listening = [line.split() for line in open_ports()]
        assert [a for a, *_ in listening if a.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{port}/metrics", timeout=5)


def open_ports() -> list[str]:
    """Return the local addresses of listening sockets, as the kernel writes them."""
    found = []
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(name) as table:  # noqa: PTH123
                rows = [line.split() for line in table][1:]
        except OSError:
            pytest.skip("the kernel does not tell what listens")
        found += [row[1] for row in rows if row[3] == "0A"]
    return found


def test_before_a_run_there_is_nothing_to_count():
    samples = read(RunMonitor())
    assert samples["rsp_elements_total"] == {(): 0}
    assert "rsp_windows_total" not in samples


def test_the_extra_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(BindingError) as refused, serve_metrics(0, RunMonitor(), str):
        pass
    assert refused.value.message == "--metrics-port needs the extra metrics"
    assert refused.value.hint == f"install it: {install_command('metrics')}"


def test_a_port_in_use_is_reported_in_two_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rspql").write_text(QUERY.replace("SERVICE :plan", "OPTIONAL"))
    (tmp_path / "s.jsonl").write_text("")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        flags = ["--stream", ":s=s.jsonl", "--metrics-port", str(port), "--quiet"]
        done = CliRunner().invoke(app, ["run", "q.rspql", *flags])
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        f"error: metrics cannot be served on port {port}: Address already in use",
        "  = hint: choose another port; 0 picks a free one",
    ]


def test_the_document_tells_every_metric_and_no_other():
    text = page("watching.md").read_text(encoding="utf-8")
    names = {f"{name}_total" for name in COUNTERS} | set(GAUGES) | set(HISTOGRAMS)
    written = {word for word in text.replace("`", " ").split() if word.startswith("rsp_")}
    assert written == names
