"""Graph stores against `oxigraph serve`: what is there after updates that are repeated."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from rsp_engine.model.answers import Graph
from tests.io.delivery.receivers import GraphServer, WebhookServer, until
from tests.io.delivery.sinks import opened, sent
from tests.io.sinks.samples import EX, GRAPH, answer

pytestmark = pytest.mark.outside

HOT = f"{EX}hot"


def about(number: int) -> Graph:
    """Return a graph with a blank node and a text that needs escaping."""
    node, verb = ox.BlankNode("b0"), ox.NamedNode(f"{EX}is")
    return Graph((ox.Triple(node, verb, ox.Literal(f'"}} }} ; DROP ALL #\n\\u0041 {number}')),))


def literals(server: GraphServer) -> dict[str, list[str]]:
    """Return the texts in each graph."""
    found: dict[str, list[str]] = {}
    for quad in ox.parse("\n".join(server.quads()), ox.RdfFormat.N_QUADS):
        found.setdefault(str(quad.graph_name), []).append(str(quad.object.value))
    return {name: sorted(texts) for name, texts in found.items()}


def text(number: int) -> str:
    return about(number).triples[0].object.value  # type: ignore[union-attr]


def test_each_window_has_a_graph_of_its_own_and_repeating_it_changes_nothing(tmp_path):
    answers = [answer(about(number), 5000 * number) for number in (1, 2)]
    with GraphServer(tmp_path) as server:
        for _ in range(2):
            sent(server.url, *answers)
        assert literals(server) == {
            f"<{EX}query/5000>": [text(1)],
            f"<{EX}query/10000>": [text(2)],
        }


def test_a_named_graph_is_replaced_by_each_window(tmp_path):
    with GraphServer(tmp_path) as server:
        sent(f"{server.url}?graph={HOT}", *(answer(about(n), 5000 * n) for n in (1, 2, 3)))
        assert literals(server) == {f"<{HOT}>": [text(3)]}
        sent(f"{server.url}?graph={HOT}", answer(Graph(()), 20000))
        assert server.quads() == set(), "an empty answer leaves nothing"


def test_a_named_graph_is_added_to_and_repeating_it_changes_nothing(tmp_path):
    answers = [answer(about(number), 5000 * number) for number in (1, 2)]
    with GraphServer(tmp_path) as server:
        for _ in range(2):
            sent(f"{server.url}?graph={HOT}&mode=add", *answers)
        assert literals(server) == {f"<{HOT}>": [text(1), text(2)]}
        assert "_:" not in " ".join(line.partition('"')[0] for line in server.quads())


def test_a_server_that_is_away_for_a_while_gets_everything(tmp_path):
    server = GraphServer(tmp_path)
    with opened(server.url, *(answer(about(n), 5000 * n) for n in (1, 2))) as sink:
        until(lambda: sink.status.trouble)
        with server:
            until(lambda: sink.status.waiting == 0)
            assert len(literals(server)) == 2


def test_an_update_is_sent_as_a_form_with_credentials(monkeypatch):
    with WebhookServer() as server:
        monkeypatch.setenv(f"RSP_SINK_127_0_0_1_{server.port}_USER", "ann")
        monkeypatch.setenv(f"RSP_SINK_127_0_0_1_{server.port}_PASSWORD", "hush")
        sent(f"sparql+{server.url}", answer(GRAPH))
    [update] = server.received
    assert update.body.startswith(b"update=DROP+SILENT+GRAPH")
    assert update.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert update.headers["Authorization"].startswith("Basic ")
