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
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from rsp_engine.drivers.spark.java_options import class_archive, java_environment
from rsp_engine.errors import DriverError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    from rsp_engine.drivers.spark.java_options import ClassArchive

__all__ = [
    "OLDEST_JAVA",
    "check_java",
    "is_started",
    "java_version",
    "lost_java",
    "start_context",
    "start_notice",
    "start_session",
]

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
_ARCHIVING_S = 120.0
"""How long to wait for Java to archive its classes when the program ends, in seconds."""
_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
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
    found = re.search(r'version "(?:1\.)?([0-9]+)', _java_description())
    return int(found[1]) if found else None


def _java_description() -> str:
    """Return how Java describes itself: its version, build and maker; empty if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return "" if java is None else _description(java)


@cache
def _description(java: str) -> str:
    try:
        result = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return result.stderr + result.stdout


def check_java() -> None:
    """Raise unless there is a Java that Spark supports; skip the check if Spark runs."""
    if is_started():
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


def is_started() -> bool:
    """Return whether this program has started Spark."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None  # pyspark has no public reference to it


def start_session(
    master: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> SparkSession:
    """Return the session of this program; start it if there is none, as `start_context` does."""
    from pyspark.sql import SparkSession

    start_context(master, settings)
    return SparkSession.builder.getOrCreate()


def start_context(
    master: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> SparkContext:
    """Return the context of this program; start it if there is none.

    A job needs no session, whose start takes longer. `settings` override those of `spark-submit`
    and `spark-defaults.conf`, and these override the engine's.
    """
    from pyspark import SparkContext

    if is_started():
        context = SparkContext.getOrCreate()
        _check_settings(context, settings)
        return context
    check_java()
    conf = _configuration(master, settings)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if conf.get("spark.master", "").startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging.getLogger("py4j").addFilter(_is_not_of_py4j)
    logging.getLogger().addFilter(_is_not_of_py4j)
    log = Path(tempfile.mkdtemp(prefix="rsp-spark-")) / "spark.log"
    try:
        with _standard_error_to(log), _kept_interrupts():
            started = _start(conf)
    except Exception as error:
        why = str(error).strip().partition("\n")[0]
        hint = f"{log} has the details; or run without Spark: --runner local"
        raise DriverError(f"Spark does not start: {why}", hint) from error
    atexit.register(shutil.rmtree, log.parent, ignore_errors=True)
    _silence(started)
    return started


def _configuration(master: str | None, settings: Mapping[str, str]) -> SparkConf:
    """Return the settings with which to start Spark."""
    from pyspark import SparkConf, SparkContext

    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if is_submitted:  # spark-submit has started Java, with its settings
        SparkContext._ensure_initialized()
    defaults = {
        line.split(maxsplit=1)[0] for line in _spark_defaults().splitlines() if line.strip()
    }
    conf = SparkConf(loadDefaults=is_submitted)
    for key, value in {"spark.app.name": "rsp-engine", **_SETTINGS}.items():
        if key not in defaults:
            conf.setIfMissing(key, value)
    conf.setAll(list(settings.items()))
    if master is not None or ("spark.master" not in defaults and not conf.contains("spark.master")):
        tries = conf.get("spark.task.maxFailures") or str(_TRIES)
        conf.setMaster(_with_retries(master or "local[*]", tries))
    return conf


def _check_settings(context: SparkContext, settings: Mapping[str, str]) -> None:
    """Raise unless Spark runs with some settings: it takes them when it starts."""
    for key, value in settings.items():
        if (now := context.getConf().get(key)) != value:
            known = "without it" if now is None else f"with {now}"
            message = f"{key}={value} cannot be set: Spark runs already, {known}"
            raise DriverError(message, "set it before the first run of the program")


def start_notice() -> str:
    """Return what to tell a user who waits for Spark to start."""
    archive, options = _java_settings()
    if archive is None or not options or archive.file is not None:
        return "starting Spark ..."
    return (
        "starting Spark ... (once, it stores its classes at the end, to start faster the next time)"
    )


def _start(conf: SparkConf) -> SparkContext:
    """Start Spark with the archive of its classes, or let it make the archive when it ends."""
    archive, options = _java_settings("\n".join(key for key, _ in conf.getAll()))
    if archive is not None and options and archive.file is None:
        atexit.register(_keep_classes, archive)
    return _started_with(options, conf)


def _java_settings(keys: str = "") -> tuple[ClassArchive | None, dict[str, str]]:
    """Return the archive of Spark's classes, and the variables with the options of Java.

    There are none if the user has set options of Java, perhaps by the keys of Spark's settings.
    """
    from pyspark.find_spark_home import _find_spark_home

    archive = class_archive(_java_description(), Path(_find_spark_home()))
    return archive, java_environment(archive, os.environ, f"{_spark_defaults()}\n{keys}")


def _started_with(options: Mapping[str, str], conf: SparkConf) -> SparkContext:
    """Start Spark with variables that are set only for its Java processes."""
    from pyspark import SparkContext

    before = {name: os.environ.get(name) for name in options}
    os.environ.update(options)
    try:
        return SparkContext.getOrCreate(conf)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _spark_defaults() -> str:
    """Return the text of the settings that a user has for all programs of Spark."""
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home()) / "conf"
    try:
        return (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _keep_classes(archive: ClassArchive) -> None:
    """End Java, wait until it has archived its classes, and keep the archive if it is whole."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    try:
        if process is not None:
            process.stdin.close()  # by which Java knows that this program ends
            if process.wait(_ARCHIVING_S) == 0:
                archive.keep_draft()
    except (OSError, subprocess.TimeoutExpired, KeyboardInterrupt):
        pass  # the next program makes it
    finally:
        archive.drop_draft()


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Filter out the log of py4j: the error of the run reports a broken connection."""
    return "py4j" not in Path(record.pathname).parts


def _silence(context: SparkContext) -> None:
    """Keep pyspark from printing a traceback when Java dies: the error of the run reports it."""
    server = context._accumulatorServer
    if server is not None:
        server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]


def _with_retries(master: str, tries: str) -> str:
    """Return a local master that tries tasks again: without that, a run ends when a worker dies.

    Spark does not read `spark.task.maxFailures` there.

    >>> [_with_retries(master, "8") for master in ("local", "local[2]", "local[*,9]", "yarn")]
    ['local[1,8]', 'local[2,8]', 'local[*,9]', 'yarn']
    """
    cores = re.fullmatch(r"local(?:\[([0-9]+|\*)\])?", master)
    return master if cores is None else f"local[{cores[1] or 1},{tries}]"


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
