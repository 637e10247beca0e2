"""The summary of a run: counts in words, what was set aside, and why nothing matched."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rsp_engine import Engine
from rsp_engine.cli import app
from rsp_engine.io.sources.files.jsonl import JsonLinesSource
from rsp_engine.io.sources.predicate_sample import MOST_SAMPLED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rsp_engine.io.sources.batch import ElementBatch
    from rsp_engine.model.streams import DeadLetter, Element

EX = "http://example.org/"
QUERY = """PREFIX : <http://example.org/>
REGISTER RSTREAM :hot AS SELECT ?room ?t
FROM NAMED WINDOW :w ON STREAM :s [RANGE 10s STEP 10s]
WHERE { WINDOW :w { ?room :%s ?t } }
"""
NQUADS = f'<{EX}a> <{EX}temperature> "20" <{EX}g/1000> .\n'
CSV = "timestamp,room,degrees\n1000,a,20\n"
TEMPLATE = '<http://example.org/{room}> <http://example.org/temperature> "{degrees}" .'


def line(time: int, verb: str = "temperature") -> str:
    return json.dumps({"timestamp": time, "graph": f"<{EX}a> <{EX}{verb}> {time} ."}) + "\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hot.rspql").write_text(QUERY % "temperature")
    (tmp_path / "slip.rspql").write_text(QUERY % "temprature")
    (tmp_path / "s.jsonl").write_text(line(1000))
    (tmp_path / "s.jsonl.gz").write_bytes(gzip.compress(line(1000).encode()))
    (tmp_path / "s.nq").write_text(NQUADS)
    (tmp_path / "s.csv").write_text(CSV)
    (tmp_path / "t.ttl").write_text(TEMPLATE)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "1.ttl").write_text(f"<{EX}a> <{EX}temperature> 20 .")
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "1.jsonl").write_text(line(1000))
    return tmp_path


def said(query: str, source: str, *flags: str, text: str | None = None) -> list[str]:
    words = ["run", query, "--stream", f":s={source}", "--output=answers.jsonl", *flags]
    done = CliRunner().invoke(app, words, input=text)
    assert done.exit_code == 0, done.stderr
    return done.stderr.splitlines()


def test_one_of_a_kind_is_in_the_singular(here):
    assert said("hot.rspql", "s.jsonl") == ["1 element, 1 window, 1 row"]
    (here / "two.jsonl").write_text(line(1000) + line(12_000))
    assert said("hot.rspql", "two.jsonl") == ["2 elements, 2 windows, 2 rows"]


@pytest.mark.parametrize(
    ("form", "counted"),
    [("CONSTRUCT { ?room :is ?t }", "1 triple"), ("ASK", "1 true answer")],
)
def test_each_form_counts_what_it_answers(here, form, counted):
    text = (QUERY % "temperature").replace("SELECT ?room ?t", form)
    (here / "form.rspql").write_text(text)
    assert said("form.rspql", "s.jsonl") == [f"1 element, 1 window, {counted}"]


def test_the_whole_reason_of_malformed_input_is_shown(here):
    (here / "s.csv").write_text(CSV + "01/06/2015 20:00:22,b,21\n")
    assert said("hot.rspql", "s.csv?template=t.ttl")[1:] == [
        "1 element set aside: malformed; the first is s.csv, line 3: its time is not of the form"
        " 2015-01-06T20:00:22Z: '01/06/2015 20:00:22'",
        "--dead-letters FILE keeps what is set aside",
    ]


def test_quiet_prints_nothing(here):
    (here / "s.jsonl").write_text(line(12_000) + line(1000) + "oops\n")
    assert said("hot.rspql", "s.jsonl", "--quiet") == []
    assert said("slip.rspql", "s.jsonl", "--quiet") == []


def test_a_run_begins_with_the_warnings_of_validation(here):
    text = (QUERY % "temperature").replace(" } }", " } OPTIONAL { ?room :floor ?f } }")
    (here / "warned.rspql").write_text(text)
    validated = CliRunner().invoke(app, ["validate", "warned.rspql"]).stderr.splitlines()
    assert "warning" in validated[0]
    assert said("warned.rspql", "s.jsonl")[: len(validated)] == validated
    assert said("warned.rspql", "s.jsonl", "--quiet") == []
    [warning] = Engine().register(text).warnings
    assert warning.message in validated[0]


@pytest.mark.parametrize(
    "source",
    ["s.jsonl", "s.jsonl.gz", "s.nq", "s.csv?template=t.ttl", "folder", "-?format=jsonl"],
)
def test_a_predicate_that_was_never_seen_is_named(source):
    assert said("slip.rspql", source, text=line(1000)) == [
        "1 element, 1 window, 0 rows",
        "note: :hot matched nothing",
        "  = hint: :temprature was never seen on :s; did you mean :temperature?",
    ]


def test_a_predicate_that_was_never_seen_on_a_live_stream_is_named():
    assert said("slip.rspql", "watch://live?format=jsonl", "--for", "2s")[-2:] == [
        "note: :hot matched nothing",
        "  = hint: :temprature was never seen on :s; did you mean :temperature?",
    ]


def test_all_predicates_are_named_and_so_are_those_of_the_stream(here):
    (here / "many.rspql").write_text(QUERY % "a/^:b|!:c ?o . ?o :temperature")
    (here / "s.jsonl").write_text(line(1000, "x") + line(2000, "y"))
    assert said("many.rspql", "s.jsonl")[-1] == (
        "  = hint: :a, :b and :temperature were never seen on :s; it has :x and :y"
    )


def test_a_count_of_nothing_is_a_row_and_yet_noted(here):
    text = (QUERY % "temprature").replace("SELECT ?room ?t", "SELECT (COUNT(*) AS ?n)")
    (here / "count.rspql").write_text(text)
    assert said("count.rspql", "s.jsonl")[:2] == [
        "1 element, 1 window, 1 row",
        "note: :hot may have counted nothing",
    ]
    (here / "count.rspql").write_text(text.replace("temprature", "temperature"))
    assert said("count.rspql", "s.jsonl") == ["1 element, 1 window, 1 row"]


def test_if_all_predicates_were_seen_the_filters_are_to_blame(here):
    text = (QUERY % "temperature").replace(" ?t } }", " ?t FILTER (?t > 5000) } }")
    (here / "filter.rspql").write_text(text)
    assert said("filter.rspql", "s.jsonl")[1:] == [
        "note: :hot matched nothing",
        "  = hint: the stream has its predicates: check its filters, its joins and its windows",
    ]


def test_a_long_stream_is_not_read_again_to_its_end(here):
    triples = " . ".join(f"<{EX}a> <{EX}x> {n}" for n in range(1000))
    row = json.dumps({"timestamp": 1000, "graph": f"{triples} ."}) + "\n"
    (here / "s.jsonl").write_text(row * 21 + line(1000, "temprature2"))
    hint = said("slip.rspql", "s.jsonl")[-1]
    assert f"never seen in the first {MOST_SAMPLED:,} triples on :s; it has :x" in hint


def test_a_run_that_matches_reads_no_source_again(monkeypatch):
    reads: list[str] = []
    whole = JsonLinesSource.batches

    def reading(self: JsonLinesSource) -> Iterator[ElementBatch | Element | DeadLetter]:
        reads.append(self.name)
        return whole(self)

    monkeypatch.setattr(JsonLinesSource, "batches", reading)
    said("hot.rspql", "s.jsonl")
    once = len(reads)
    said("slip.rspql", "s.jsonl")
    assert len(reads) == 2 * once + 1


def test_a_resumed_run_without_anything_new_has_no_note(here):
    said("hot.rspql", "s.jsonl", "--checkpoint=state")
    assert said("hot.rspql", "s.jsonl", "--checkpoint=state")[-1] == "1 element, 0 windows, 0 rows"


def test_programs_ask_for_unseen_predicates_too():
    with Engine() as engine:
        engine.register(QUERY % "temprature")
        engine.bind(f"{EX}s", iter([(1000, f"<{EX}a> <{EX}temperature> 1 .")]))
        list(engine.run())
        [found] = engine.unseen_predicates(f"{EX}hot")
    assert found == (f"{EX}s", [f"{EX}temprature"], {f"{EX}temperature"}, True)


def test_seconds_that_are_taken_for_milliseconds_are_warned_of_once(here):
    seconds = 1_709_283_550
    (here / "sec.jsonl").write_text("".join(line(seconds + 20 * n) for n in range(3)))
    warned = said("hot.rspql", "sec.jsonl")
    assert warned[:2] == [
        "warning: times are in 1970, around 1970-01-20T18:48:10Z: are they seconds?",
        "  = hint: times are milliseconds; if these are seconds, write unit=s: SOURCE?unit=s",
    ]
    assert len(warned) == 3
    assert said("hot.rspql", "sec.jsonl", "--quiet") == []
    assert said("hot.rspql", "sec.jsonl?unit=s") == ["3 elements, 3 windows, 3 rows"]


@pytest.mark.parametrize(
    ("unit", "time"),
    [("s", "1709283550.25"), ("us", "1709283550250999"), ("ns", "1.70928355025e18")],
)
@pytest.mark.parametrize("source", ["u.jsonl?unit={}", "u.csv?template=t.ttl&unit={}"])
def test_a_time_that_is_a_number_counts_the_unit_of_its_source(here, unit, time, source):
    (here / "u.jsonl").write_text(line(0).replace('"timestamp": 0', f'"timestamp": {time}'))
    (here / "u.csv").write_text(CSV.replace("1000", f"{float(time):.0f}" if "e" in time else time))
    assert said("hot.rspql", source.format(unit), "--times", "iso") == [
        "1 element, 1 window, 1 row"
    ]
    window = json.loads((here / "answers.jsonl").read_text())["window"]
    assert window == {"open": "2024-03-01T08:59:10Z", "close": "2024-03-01T08:59:20Z"}


def test_iso_times_are_read_without_an_option(here):
    (here / "i.csv").write_text(CSV.replace("1000", "2024-03-01T08:59:11.5+00:00"))
    (here / "i.jsonl").write_text(line(0).replace(": 0,", ': "2024-03-01T09:59:11.5+01:00",', 1))
    for source in ("i.csv?template=t.ttl", "i.jsonl"):
        said("hot.rspql", source, "--format=csv", "--times=iso")
        first = (here / "answers.jsonl").read_text().splitlines()[1]
        assert first.startswith("2024-03-01T08:59:10Z,2024-03-01T08:59:20Z,")


def test_iso_times_are_refused_where_the_format_has_none(here):
    words = ["run", "hot.rspql", "--stream", ":s=s.jsonl", "--times=iso", "--format=sparql-json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert (
        "sparql-json has no ISO times\n  = hint: these formats have: jsonl, csv, tsv" in done.stderr
    )


def test_a_constructed_stream_with_iso_times_can_be_read_back(here):
    text = (QUERY % "temperature").replace("SELECT ?room ?t", "CONSTRUCT { ?room :temperature ?t }")
    (here / "made.rspql").write_text(text)
    said("made.rspql", "s.jsonl", "--times=iso")
    (here / "answers.jsonl").rename("made.jsonl")
    assert said("hot.rspql", "made.jsonl") == ["1 element, 1 window, 1 row"]


@pytest.mark.parametrize("bound", [":t=s.jsonl", "t=s.jsonl", "http://example.org/t=s.jsonl"])
def test_a_stream_that_no_query_reads_is_told_what_they_read(bound):
    done = CliRunner().invoke(app, ["run", "hot.rspql", "--stream", bound])
    assert done.exit_code == 2
    assert "error: no query reads stream <" in done.stderr
    assert (
        "the queries read <http://example.org/s>; bind it: --stream http://example.org/s=SOURCE"
        in (done.stderr)
    )


def test_a_stream_without_a_name_is_told_the_name():
    done = CliRunner().invoke(app, ["run", "hot.rspql", "--stream", "s.jsonl"])
    assert "name it as the query does: --stream http://example.org/s=s.jsonl" in done.stderr


def test_a_recorded_stream_on_standard_input_is_replayed():
    done = CliRunner().invoke(
        app, ["replay", "-?format=jsonl", "mqtt://127.0.0.1:1/topic"], input=line(1000)
    )
    assert done.exit_code == 3
    assert "the broker cannot be reached" in done.stderr


@pytest.mark.parametrize(
    ("flag", "value", "reason"),
    [
        ("n", "x", "it must be a whole number"),
        ("budget", "x", "it is neither a number nor a duration such as 80ms"),
        ("speed", "fast", "it must be a number"),
        ("metrics-port", "99999", "it must be at most 65535"),
        ("max-instances", "0", "it must be at least 1"),
        ("runner", "sprk", "'sprk' is not one of 'auto', 'local', 'spark'"),
    ],
)
def test_a_refused_value_is_told_in_plain_words(here, flag, value, reason):
    words = ["run", "hot.rspql", "--stream=:s=s.jsonl"]
    (here / "rsp.toml").write_text(f'[run]\n{flag} = "{value}"\n')
    for done in (
        CliRunner().invoke(app, words),
        CliRunner().invoke(app, [*words, "--config=/dev/null", f"--{flag}={value}"]),
    ):
        assert done.exit_code == 2
        assert reason in done.stderr
        assert "Input should" not in done.stderr
        assert "Value error" not in done.stderr


def test_a_static_graph_that_cannot_be_read_is_told_with_its_line(here):
    (here / "bad.ttl").write_text("\noops <")
    text = (QUERY % "temperature").replace("FROM NAMED", "FROM <bad.ttl> FROM NAMED")
    (here / "graph.rspql").write_text(text.replace("WHERE {", "WHERE { ?x :in ?room ."))
    done = CliRunner().invoke(app, ["run", "graph.rspql", "--stream=:s=s.jsonl"])
    assert done.stderr.startswith("error: bad.ttl: this graph cannot be read: line 2: oops is not")
    assert "Parser error" not in done.stderr
