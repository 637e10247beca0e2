"""Failures of Spark's processes, and the sizes of splits over which a run is spread."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark import util as pyspark_util
from pyspark.errors import PySparkRuntimeError

from rsp_engine.engine import Engine
from rsp_engine.errors import DriverError
from rsp_engine.io.sources import open_source
from tests.data import PROJECT
from tests.drivers.cut import texts
from tests.drivers.spark import dying
from tests.drivers.spark.test_driver import EX, HEAD, KINDS, engine, lines
from tests.thoroughness import TIMES, examples

thorough = pytest.mark.skipif(TIMES == 1, reason="RSP_THOROUGH=1 asks for it")


@pytest.fixture
def stream(tmp_path):
    path = tmp_path / "stream.nq"
    path.write_text("".join(lines(5, late=True)), encoding="utf-8")
    return path


def dies(times: int, stream: Any, tmp_path: Any) -> Engine:
    made = Engine(max_delay=1_000, runner="spark", split_bytes=20_000)
    made.register(HEAD + KINDS["the best"])
    source: Any = open_source(str(stream))
    made.bind(f"{EX}s", dying.Dying(source, tmp_path, times))  # type: ignore[arg-type]
    return made


@pytest.fixture
def by_value():
    cloudpickle.register_pickle_by_value(dying)
    yield
    cloudpickle.unregister_pickle_by_value(dying)


@pytest.mark.usefixtures("spark", "by_value")
def test_who_reads_may_be_killed_and_nothing_is_lost_or_repeated(stream, tmp_path):
    expected = texts(engine("the best", str(stream), "local"))
    assert texts(dies(2, stream, tmp_path)) == expected
    assert len(list(tmp_path.glob("death-*"))) == 2


@thorough  # half a minute: Spark tries eight times, each with processes of its own
@pytest.mark.usefixtures("spark", "by_value")
def test_who_reads_may_not_be_killed_for_ever(stream, tmp_path):
    with pytest.raises(DriverError, match="Spark stopped"):
        texts(dies(1_000, stream, tmp_path))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_job_whose_result_breaks_off_is_an_error(share, stream, monkeypatch):
    """Java may die while it sends, which pyspark takes for the end of the result."""
    connect = pyspark_util.local_connect_and_auth

    def break_off(*place: Any) -> Any:
        stream, connection = connect(*place)
        result = stream.read()
        return io.BytesIO(result[: int(share * len(result))]), connection

    monkeypatch.setattr(pyspark_util, "local_connect_and_auth", break_off)
    with pytest.raises(DriverError, match=r"^Spark stopped: it sent \d+ of \d+ results\n"):
        texts(engine("the best", str(stream), "spark", split_bytes=5_000))


@pytest.mark.usefixtures("spark")
def test_a_job_whose_result_cannot_be_fetched_is_an_error(stream, monkeypatch):
    """Java may die before it sends; pyspark then fails in its own way."""

    def refuse(*_: Any) -> Any:
        raise PySparkRuntimeError("no such socket")

    monkeypatch.setattr(pyspark_util, "local_connect_and_auth", refuse)
    with pytest.raises(DriverError, match=r"^Spark stopped: no such socket\n"):
        texts(engine("the best", str(stream), "spark"))


@pytest.mark.usefixtures("spark")
@settings(examples(3), phases=[Phase.reuse, Phase.generate])  # to shrink takes minutes
@given(
    size=st.integers(1_000, 60_000), seed=st.integers(0, 99), kind=st.sampled_from(sorted(KINDS))
)
def test_the_size_of_batches_does_not_matter(size, seed, kind, tmp_path_factory):
    path = tmp_path_factory.mktemp("sizes") / "stream.nq"
    path.write_text("".join(lines(seed, late=True)), encoding="utf-8")
    spark = engine(kind, str(path), "spark", split_bytes=size)
    assert texts(spark) == texts(engine(kind, str(path), "local"))


@thorough  # a minute and more: the cluster has four processes of Java
def test_a_cluster_gives_the_same_bytes(stream, tmp_path):
    query = tmp_path / "query.rspql"
    query.write_text(f"PREFIX : <{EX}> " + KINDS["groups"])
    told = ["-m", "rsp_engine.cli", "run", str(query), "--stream", f"{EX}s={stream}"]
    told += ["--max-delay", "1s", "--split-bytes", "20000"]

    def output(*where: str) -> bytes:
        done = subprocess.run(  # noqa: S603 - our own
            [sys.executable, *told, *where], cwd=PROJECT, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    expected = output("--runner", "local")
    assert len(expected.splitlines()) > 10
    assert json.loads(expected.splitlines()[-1])
    assert output("--runner", "spark", "--master", "local-cluster[2,1,1024]") == expected
