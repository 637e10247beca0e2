"""The Spark session: a check of Java, the settings, and no output of its own.

Spark and Java print nothing. The session is started once, and the runs of a program share it.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from rsp_engine.errors import DriverError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["OLDEST_JAVA", "check_java", "java_version", "lost_java", "start_session"]

OLDEST_JAVA = 17
"""The oldest version of Java that Spark 4 supports."""
_TRIES = 8
"""How often a task is tried before the run fails."""
_PATIENCE = "120s"
"""How long a Python worker may take to connect, on a busy machine."""
_DYING_S = 5.0
"""How long to wait for the exit code of a Java process that ends, in seconds."""
_HINT = (
    "install it, for instance with: sudo apt-get install openjdk-17-jre-headless;"
    " or run without Spark: --runner local"
)
_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.task.maxFailures": str(_TRIES),
    "spark.python.authenticate.socketTimeout": _PATIENCE,
}


def java_version() -> int | None:
    """Return the major version of the Java that Spark would start; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        result = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return None
    found = re.search(r'version "(?:1\.)?([0-9]+)', result.stderr + result.stdout)
    return int(found[1]) if found else None


def check_java() -> None:
    """Raise unless there is a Java that Spark supports; skip the check if a session runs."""
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        return
    version = java_version()
    if version is None:
        raise DriverError(f"Spark needs Java {OLDEST_JAVA} or later, but none is installed", _HINT)
    if version < OLDEST_JAVA:
        message = f"Spark needs Java {OLDEST_JAVA} or later, but this is Java {version}"
        raise DriverError(message, _HINT)


def lost_java() -> str | None:
    """Return how the Java process of the session ended; None if it runs.

    The references of pyspark to it are dropped, so that the next run starts another.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway  # pyspark has no public reference to the process
    if gateway is None or _answers(gateway):
        return None
    code = _exit_code(getattr(gateway, "proc", None))
    SparkContext._gateway = SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    if code is None:
        return "no longer responds"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def _exit_code(process: subprocess.Popen[bytes] | None) -> int | None:
    """Return the exit code of a process that ends; None if it is not known."""
    if process is None:
        return None
    try:
        return process.wait(_DYING_S)
    except subprocess.TimeoutExpired:
        return None


def _answers(gateway: JavaGateway) -> bool:
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except (Py4JError, OSError):
        return False
    return True


def start_session(master: str | None = None, packages: str | None = None) -> SparkSession:
    """Return the session of this program; start it, with Maven packages, if there is none."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    check_java()
    master = master or "local[*]"
    builder = SparkSession.builder.appName("rsp-engine").master(_with_retries(master))
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    if packages is not None:
        builder = builder.config("spark.jars.packages", packages)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging.getLogger("py4j").addFilter(_is_not_of_py4j)
    logging.getLogger().addFilter(_is_not_of_py4j)
    log = Path(tempfile.mkdtemp(prefix="rsp-spark-")) / "spark.log"
    try:
        with _standard_error_to(log), _kept_interrupts():
            started = builder.getOrCreate()
    except Exception as error:
        why = str(error).strip().partition("\n")[0]
        hint = f"{log} has the details; or run without Spark: --runner local"
        raise DriverError(f"Spark does not start: {why}", hint) from error
    atexit.register(shutil.rmtree, log.parent, ignore_errors=True)
    _silence(started.sparkContext)
    cores = started.sparkContext.defaultParallelism
    started.conf.set("spark.sql.shuffle.partitions", str(cores))
    return started


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Filter out the log of py4j: the error of the run reports a broken connection."""
    return "py4j" not in Path(record.pathname).parts


def _silence(context: SparkContext) -> None:
    """Keep pyspark from printing a traceback when Java dies: the error of the run reports it."""
    server = context._accumulatorServer
    if server is not None:
        server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]


def _with_retries(master: str) -> str:
    """Return a local master with retries of tasks: without them, Spark fails when a worker dies.

    >>> _with_retries("local"), _with_retries("local[2]"), _with_retries("local[*,9]"), _with_retries("spark://a:7077")
    ('local[1,8]', 'local[2,8]', 'local[*,9]', 'spark://a:7077')
    """
    cores = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return master if cores is None else f"local[{cores[1] or 1},{_TRIES}]"


@contextmanager
def _kept_interrupts() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which Spark replaces by one that ends everything at once."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _standard_error_to(log: Path) -> Iterator[None]:
    """Redirect the standard error of processes that are started to a file: Java logs a lot.

    The standard error of this process, in other threads, stays as it is.
    """
    sys.stderr.flush()
    kept, before = os.dup(2), sys.stderr
    with log.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
    try:
        if before is sys.__stderr__:
            sys.stderr = os.fdopen(os.dup(kept), "w", encoding="utf-8", buffering=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of Spark
            yield
    finally:
        if sys.stderr is not before:
            sys.stderr.close()
            sys.stderr = before
        before.flush()
        os.dup2(kept, 2)
        os.close(kept)
