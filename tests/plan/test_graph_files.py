"""Static graphs: a query reads files in its folder, and those that the user names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rsp_engine import Engine
from rsp_engine.errors import QueryError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "<http://example.org/a> <http://example.org/p> 1 ."


def query(graph: str, form: str = "FROM NAMED", base: str = "") -> str:
    return f"""{base} PREFIX : <http://example.org/>
    REGISTER RSTREAM :q AS SELECT ?x {form} <{graph}>
    FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
    WHERE {{ WINDOW :w {{ ?x ?p ?y }} {{ ?x :p 1 }} }}"""


@pytest.fixture
def folder(tmp_path):
    for name in ("inner", "inner/sub", "inner-beside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "graph.ttl").write_text(TEXT)
    (tmp_path / "graph.ttl").write_text(TEXT)
    (tmp_path / "inner" / "link.ttl").symlink_to(tmp_path / "graph.ttl")
    (tmp_path / "inner" / "out").symlink_to(tmp_path)
    (tmp_path / "inner" / "within.ttl").symlink_to(tmp_path / "inner" / "sub" / "graph.ttl")
    (tmp_path / "inner" / "ring.ttl").symlink_to(tmp_path / "inner" / "ring.ttl")
    return tmp_path


@pytest.mark.parametrize("form", ["FROM", "FROM NAMED"])
@pytest.mark.parametrize(
    "graph",
    [
        "file://{}/graph.ttl", "file://{}/inner-beside/graph.ttl", "file:{}/graph.ttl",
        "../graph.ttl", "%2e%2e/graph.ttl", "sub/../../graph.ttl", "link.ttl", "out/graph.ttl",
        "file://localhost{}/graph.ttl", "../is-not-there.ttl", "a%00b.ttl", "ring.ttl",
        "file://{}/inner/../graph.ttl",
    ],
)  # fmt: skip
def test_a_query_reads_no_file_outside_its_folder(folder, graph, form):
    engine = Engine()
    text = query(graph.format(folder), form)
    with pytest.raises(QueryError) as refused:
        engine.register(text, "q.rspql", folder / "inner")
    assert "is a file that is not in the folder of the query" in str(refused.value)
    assert "other files must be named: --graph " in str(refused.value)


def test_a_base_does_not_lead_out_either(folder):
    text = query("graph.ttl", base=f"BASE <file://{folder}/>")
    with pytest.raises(QueryError, match="is not in the folder of the query"):
        Engine().register(text, "q.rspql", folder / "inner")


@pytest.mark.parametrize(
    "graph",
    ["graph.ttl", "sub/graph.ttl", "file://{}/inner/graph.ttl", "within.ttl", "file:sub/graph.ttl"],
)
def test_a_query_reads_files_in_its_folder(folder, graph):
    Engine().register(query(graph.format(folder)), "q.rspql", folder / "inner")


def test_a_file_that_the_user_names_is_read_wherever_it_is(folder):
    for graph in (f"file://{folder}/graph.ttl", "../graph.ttl", "http://example.org/g"):
        engine = Engine()
        engine.graph(graph, folder / "graph.ttl")
        engine.register(query(graph), "q.rspql", folder / "inner")


def test_without_a_query_file_the_folder_is_the_current_one(folder: Path, monkeypatch):
    monkeypatch.chdir(folder / "inner")
    Engine().register(query("graph.ttl"))
    with pytest.raises(QueryError, match="is not in the folder of the query"):
        Engine().register(query("../graph.ttl"))
