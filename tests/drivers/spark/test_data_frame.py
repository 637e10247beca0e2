"""DataFrames of Spark as streams: the answers are those of the same rows in a file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from rsp_engine import Engine, as_arrow, as_spark
from rsp_engine.errors import BindingError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rsp_engine.model.answers import Answer

pytestmark = pytest.mark.outside

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}>
REGISTER RSTREAM :warm AS SELECT ?room ?t FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
WHERE {{ WINDOW :w {{ ?room :temperature ?t }} }} ORDER BY DESC(?t) LIMIT 2"""
TEMPLATE = '@prefix : <http://example.org/> . :{room} :temperature "{in.celsius}"^^xsd:double .'
ROWS = [(f"r{n % 7}", (float(n * 37 % 100),), 1_700_000_000_000 + 250 * n) for n in range(200)]
SCHEMA = "room string, in struct<celsius: double>, timestamp long"


def found(answers: Iterable[Answer]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = as_arrow(answers).to_pylist()
    return rows


def engine(**options: Any) -> Engine:
    made = Engine(**options)
    made.register(QUERY)
    return made


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("rows")
    rows = [{"room": r, "in": {"celsius": v[0]}, "timestamp": at} for r, v, at in ROWS]
    (folder / "s.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "t.ttl").write_text(TEMPLATE)
    with engine() as reader:
        reader.bind(f"{EX}s", f"{folder}/s.json?template={folder}/t.ttl")
        return found(reader.run())


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "t.ttl"
    path.write_text(TEMPLATE)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("runner", ["local", "spark"])
def test_rows_in_any_order_become_triples_by_a_template(spark, template, runner, expected):
    frame = spark.createDataFrame(ROWS[::-1], SCHEMA).repartition(3)
    with engine(runner=runner) as reader:
        reader.bind(f"{EX}s", frame, template=template)
        assert found(reader.run()) == expected


def test_rows_may_be_triples(spark, expected):
    rows = [(f"{EX}{room}", f"<{EX}temperature>", value[0], at) for room, value, at in ROWS]
    with engine() as reader:
        reader.bind(":s", spark.createDataFrame(rows, ["subject", "predicate", "object", "time"]))
        assert found(reader.run()) == expected


def test_times_may_be_timestamps_of_spark(spark, template, expected):
    rows = [(r, v, datetime.fromtimestamp(at / 1000, UTC)) for r, v, at in ROWS]
    frame = spark.createDataFrame(rows, SCHEMA.replace("timestamp long", "at timestamp"))
    with engine() as reader:
        reader.bind(":s", frame, template=template, time="at")
        assert found(reader.run()) == expected


def test_rows_that_do_not_fit_are_set_aside(spark):
    rows = [
        (f"{EX}a", f"{EX}temperature", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>', 1),
        (f"{EX}a", f"{EX}temperature", "a text", 2),
        (f"{EX}a", f"{EX}temperature", None, 3),
        ("a b", f"{EX}temperature", "<urn:x>", 4),
        (f"{EX}b", f"{EX}temperature", '"say \\"hi\\""@en', 5),
    ]
    letters: list[Any] = []
    with engine(dead_letter=letters.append) as reader:
        frame = spark.createDataFrame(
            rows, "subject string, predicate string, object string, time long"
        )
        reader.bind(":s", frame, unit="s")
        assert [row["t"] for row in found(reader.run())] == ['say "hi"', "1"]
    assert [letter.position for letter in letters] == [2, 3, 4]
    assert all(letter.source.startswith("DataFrame 1 (subject, ") for letter in letters)


def test_a_run_that_resumes_reads_the_rows_of_the_first_one(spark, template, tmp_path, expected):
    answers: list[Answer] = []
    for frame in (spark.createDataFrame(ROWS, SCHEMA), spark.createDataFrame([], SCHEMA)):
        with engine(checkpoint=tmp_path / "state", split_bytes=1_000) as reader:
            reader.bind(":s", frame, template=template)
            for answer in reader.run():
                answers.append(answer)
                if len(answers) == 2:
                    reader.stop()
    assert found(answers) == expected


def test_a_streaming_frame_is_read_until_its_query_ends_or_the_run_stops(
    spark: SparkSession, template, tmp_path, expected
):
    folder = tmp_path / "arriving"
    folder.mkdir()
    answers: list[Answer] = []
    for half in (ROWS[:100], ROWS[100:]):
        rows = [{"room": r, "in": {"celsius": v[0]}, "timestamp": at} for r, v, at in half]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "draft").write_text(text)
        (tmp_path / "draft").rename(folder / f"{len(answers)}.json")
        frame = spark.readStream.schema(SCHEMA).json(str(folder))
        with engine(checkpoint=tmp_path / "state") as reader:
            reader.bind(":s", frame, template=template)
            last = half[-1][2] // 10_000 * 10_000
            for answer in reader.run():
                answers.append(answer)
                if answer.window.close >= last:
                    reader.stop()
    closed = max(answer.window.close for answer in answers)
    assert found(answers) == [row for row in expected if row["close"] <= closed]


def test_answers_are_a_frame_of_spark(spark, template, expected):
    with engine() as reader:
        reader.bind(":s", spark.createDataFrame(ROWS, SCHEMA), template=template)
        frame = as_spark(reader.run())
    assert frame.columns == ["query", "open", "close", "rank", "score", "age", "room", "t"]
    assert [row.asDict() for row in frame.collect()] == expected
    assert as_spark([]).count() == 0


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("a long", {}, "it has no column subject"),
        ("subject string, predicate string, object string", {}, "no column time with the times"),
        ("room string, at long", {"template": "t.ttl"}, "no column timestamp with the times"),
        ("room string, timestamp long", {"template": "absent.ttl"}, "absent.ttl: the template"),
        ("room string, timestamp long", {"template": "t.ttl", "unit": "h"}, "the option unit"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused(spark, here, columns, options, said):
    (here / "t.ttl").write_text("<urn:{room}> <urn:p> 1 .")
    frame = spark.createDataFrame([], columns)
    with engine() as reader, pytest.raises((BindingError, SourceError), match=said):
        reader.bind(":s", frame, **options)


def test_on_a_cluster_a_frame_needs_a_checkpoint(spark, tmp_path, monkeypatch):
    frame = spark.createDataFrame([], "subject string, predicate string, object string, time long")
    monkeypatch.setattr(spark.sparkContext, "master", "spark://host:7077")
    with engine() as reader, pytest.raises(BindingError, match="share no temporary folder"):
        reader.bind(":s", frame)
    with engine(checkpoint=tmp_path / "state") as reader:
        reader.bind(":s", frame)


def test_a_file_takes_its_options_behind_a_question_mark():
    with pytest.raises(BindingError, match="only a DataFrame takes template"):
        engine().bind(":s", "rows.json", template="t.ttl")
