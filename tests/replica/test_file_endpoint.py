"""A file in place of an endpoint: a dataset, or a history whose values depend on event time."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from typer.testing import CliRunner

from rsp_engine import Engine, Solutions
from rsp_engine.cli import app
from rsp_engine.errors import ServiceError, SourceError

EX = "http://example.org/"
QUERY = (
    f"PREFIX : <{EX}> SELECT ?s ?f FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]"
    " WHERE { WINDOW :w { ?s :p ?v } SERVICE :people { ?s :followers ?f } }"
    " ORDER BY DESC(?f) LIMIT 1"
)
STREAM = [(second * 1000, f"<{EX}a> <{EX}p> {second} .") for second in (1, 11, 21)]


def scores(service, **options):
    with Engine(policy="EXACT", **options) as engine:
        engine.service(f"{EX}people", service)
        engine.register(QUERY)
        engine.bind(f"{EX}s", STREAM)
        contents = [answer.content for answer in engine.run()]
    return [c.rows[0].score for c in contents if isinstance(c, Solutions) and c.rows]


@pytest.mark.parametrize("suffix", ["ttl", "nt", "TTL"])
def test_rdf_is_a_dataset(suffix, tmp_path):
    path = tmp_path / f"people.{suffix}"
    path.write_text(
        f"<{EX}a> <{EX}followers> 7 .".replace(
            "7 .", '"7"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        )
    )
    store = ox.Store()
    store.add(ox.Quad(ox.NamedNode(f"{EX}a"), ox.NamedNode(f"{EX}followers"), ox.Literal(7)))
    assert scores(str(path)) == scores(store) == [7, 7, 7]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("h.csv", f"time,s,f\n0,<{EX}a>,1\n15000,<{EX}a>,2\n25000,<{EX}a>,\n"),
        (
            "h.jsonl",
            "".join(
                f'{{"time": {time}, "key": ["<{EX}a>"], "solutions": {solutions}}}\n'
                for time, solutions in ((0, '[{"f": "1"}]'), (15000, '[{"f": "2"}]'), (25000, "[]"))
            ),
        ),
    ],
)
def test_a_history_has_the_values_of_each_window(name, text, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    assert scores(str(path)) == [1, 2]


def test_a_file_that_is_missing_or_malformed_is_refused(tmp_path):
    with pytest.raises(SourceError, match="there is no such file"):
        scores(str(tmp_path / "people.ttl"))
    (tmp_path / "people.ttl").write_text("<a")
    with pytest.raises(SourceError, match=r"people\.ttl cannot be read: "):
        scores(str(tmp_path / "people.ttl"))
    (tmp_path / "h.csv").write_text("time,user\n")
    with pytest.raises(SourceError, match="has no column 's'"):
        scores(str(tmp_path / "h.csv"))


def test_a_text_that_is_neither_a_url_nor_a_file_is_refused():
    with pytest.raises(ServiceError, match="must begin with http"):
        Engine().service(f"{EX}people", "localhost:7878/query")


def test_a_history_reports_no_changes(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text(f"time,s,f\n0,<{EX}a>,1\n")
    with Engine() as engine:
        engine.service(f"{EX}people", str(path), modified=f"{EX}modified")
        engine.register(QUERY)
        engine.bind(f"{EX}s", STREAM)
        with pytest.raises(ServiceError, match="states no time of modification"):
            list(engine.run())


def test_files_need_no_permission_to_be_contacted(tmp_path):
    (tmp_path / "q.rspql").write_text(QUERY)
    (tmp_path / "h.csv").write_text(f"time,s,f\n0,<{EX}a>,1\n")
    stream = '{{"timestamp": {}, "graph": {!r}}}\n'
    (tmp_path / "s.jsonl").write_text(
        "".join(stream.format(t, g).replace("'", '"') for t, g in STREAM)
    )
    arguments = ["run", f"{tmp_path}/q.rspql", f"--stream=:s={tmp_path}/s.jsonl"]
    service = [f"--service=:people={tmp_path}/h.csv", "--allow=http://localhost:1", "--quiet"]
    done = CliRunner().invoke(app, [*arguments, *service, "--format=csv"])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count(f"{EX}a") == 3
    refused = CliRunner().invoke(app, [*arguments, *service, f"--output={tmp_path}/h.csv"])
    assert refused.exit_code == 2, "it would overwrite the history"
