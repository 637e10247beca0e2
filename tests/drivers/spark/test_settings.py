"""Settings of Spark: whose prevail, and what happens where the executors lack the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv

import pytest

from rsp_engine.drivers.spark.driver import SparkDriver
from rsp_engine.drivers.spark.session import _configuration, start_context
from rsp_engine.drivers.splits.split_run import SplitRun
from rsp_engine.errors import DriverError
from tests.thoroughness import TIMES

EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}> SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE 10ms STEP 5ms]
WHERE {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2"""


def test_settings_of_the_user_prevail(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 3g\nspark.a 1\n\n# c\n")
    conf = _configuration(None, {"spark.task.maxFailures": "2"})
    assert conf.get("spark.driver.memory") is None, "Spark reads it from its file"
    assert conf.get("spark.task.maxFailures") == "2"
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.master") == "local[*,2]", "where Spark does not read the setting"
    assert _configuration(None, {}).get("spark.master") == "local[*,8]"
    assert _configuration("spark://a:1", {}).get("spark.master") == "spark://a:1"


def test_a_master_of_the_user_prevails(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.master spark://a:1\n")
    assert _configuration(None, {}).get("spark.master") is None
    settings = {"spark.master": "spark://b:1"}
    assert _configuration(None, settings).get("spark.master") == "spark://b:1"


def test_settings_come_too_late_for_a_spark_that_runs(spark):
    name = "spark.ui.enabled"
    assert start_context(settings={name: "false"}) is spark.sparkContext
    with pytest.raises(DriverError, match="Spark runs already, with false"):
        start_context(settings={name: "true"})
    with pytest.raises(DriverError, match="Spark runs already, without it"):
        start_context(settings={"spark.other": "1"})


def test_a_package_that_executors_lack_is_named():
    trace = "Traceback:\n  ModuleNotFoundError: No module named 'rsp_engine.drivers'\n"
    failure = SparkDriver(SplitRun([], {}, print))._failure(trace)
    assert failure.message == "the executors of Spark cannot import rsp_engine"
    assert "PYSPARK_PYTHON" in str(failure.hint)


def test_an_error_of_the_engine_on_an_executor_keeps_its_message_and_its_hint():
    """The traceback of a task is in the message of Spark, which is in that of Java."""
    raised = DriverError("the pane file a.panes cannot be read: it is cut off", "look at it")
    name = f"{DriverError.__module__}.{DriverError.__qualname__}"
    trace = f"An error.\n: Job aborted: Traceback:\n  raise _damage()\n{name}: {raised}\n\n\tat a.B"
    failure = SparkDriver(SplitRun([], {}, print))._failure(trace)
    assert failure.message == f"an executor failed: {raised.message}"
    assert failure.hint == "look at it; the state before this batch is kept"


@pytest.mark.skipif(TIMES == 1, reason="RSP_THOROUGH=1 asks for it: Spark starts twice")
@pytest.mark.outside
def test_spark_reports_executors_that_lack_the_package_once(tmp_path):
    venv.create(tmp_path / "other", with_pip=False)
    (tmp_path / "q.rspql").write_text(QUERY)
    lines = [f'<{EX}s{n}> <{EX}p> "{n % 7}" <{EX}g/{n}> .\n' for n in range(40)]
    (tmp_path / "s.nq").write_text("".join(lines))
    command = [sys.executable, "-m", "rsp_engine.cli", "run", "q.rspql", "--stream", ":s=s.nq"]
    command += ["--runner", "spark", "--master", "local[1]", "--quiet"]
    other = str(tmp_path / "other" / "bin" / "python")
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603 - our own
        command,
        cwd=tmp_path,
        env={**without, "PYSPARK_PYTHON": other},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "error: the executors of Spark cannot import" in done.stderr
    assert "Traceback" not in done.stderr
    set_by_flag = [*command, "--conf", "spark.task.maxFailures=1", "--conf", "spark.app.name=x"]
    done = subprocess.run(  # noqa: S603 - our own
        set_by_flag, cwd=tmp_path, env=without, capture_output=True, text=True, check=True
    )
    assert len([json.loads(line) for line in done.stdout.splitlines()]) > 1
