"""The cost of a start: CPU seconds of commands over a file of three lines, and the dearest imports.

A row is the median over the whole tree of processes, user and system, with compiled bytecode. Spark
is measured with the archive of its classes, which the first of its runs makes, and without; where
there is no Java, it is left out.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.markdown import print_head, print_row, print_table
from rsp_engine.drivers.spark.session import OLDEST_JAVA, java_version

EX = "http://example.org/"
FRAME = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]"
QUERIES = {
    "top.rspql": f"SELECT ?s ?v {FRAME} {{ WINDOW :w {{ ?s :p ?v }} }} ORDER BY DESC(?v) LIMIT 2",
    "general.rspql": f"SELECT ?s {FRAME} {{ WINDOW :w {{ ?s :p ?v }} FILTER NOT EXISTS"
    " { ?s :q 1 } }",
}
DEAREST = 12
PR_SET_CHILD_SUBREAPER = 36
_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|\s*(\S+)")


def cpu_seconds(command: list[str], folder: Path) -> float:
    """Run a command, and return the CPU seconds of it and of all processes below it.

    Java and its Python processes can outlive the command, so a process between inherits and awaits
    them.
    """
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        code = 1
        try:
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            quiet = subprocess.DEVNULL
            process = subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet)  # noqa: S603
            used = _await_all(process.pid)
            os.write(writing, str(used).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as result:
        text = result.read()
    os.waitpid(between, 0)
    if not text:
        raise SystemExit(f"this failed: {' '.join(command)}")
    return float(text)


def _await_all(command: int) -> float:
    """Wait for all processes below this one; raise if the command fails."""
    while True:
        try:
            number, status = os.wait()
        except ChildProcessError:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime
        if number == command and status != 0:
            raise OSError(f"status {status}")


def dearest(command: list[str], folder: Path) -> list[tuple[str, float, float]]:
    """Return the imports of a command that take longest: its ms, and those with imports below."""
    timed = [command[0], "-X", "importtime", *command[1:]]
    done = subprocess.run(timed, cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603
    found = _IMPORT.findall(done.stderr)
    rows = [(name, int(own) / 1000, int(whole) / 1000) for own, whole, name in found]
    return sorted(rows, key=lambda row: -row[1])[:DEAREST]


def write_files(folder: Path) -> None:
    """Write the stream and the queries."""
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    lines = [f'<{EX}u{n}> <{EX}p> "{n}"^^<{integer}> <{EX}g/{1000 * n}> .\n' for n in range(1, 4)]
    (folder / "tiny.nq").write_text("".join(lines))
    for name, query in QUERIES.items():
        (folder / name).write_text(f"PREFIX : <{EX}> {query}")


def main() -> None:
    """Print the table of starts, and that of imports."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--runs", type=int, default=5)
    options = flags.parse_args()
    rsp = [sys.executable, "-m", "rsp_engine.cli"]
    run = [*rsp, "run", "--quiet", "--stream", ":s=tiny.nq", "--output", "out"]
    cases = {
        "`python -c pass`": [sys.executable, "-c", "pass"],
        "`import numpy`": [sys.executable, "-c", "import numpy"],
        "`rsp --version`": [*rsp, "--version"],
        "`rsp validate`": [*rsp, "validate", "top.rspql"],
        "`rsp run`, top-k": [*run, "--runner", "local", "top.rspql"],
        "`rsp run`, general path": [*run, "--runner", "local", "general.rspql"],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["RSP_CACHE_DIR"] = str(folder / "cache")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        write_files(folder)
        print_head(["start", "CPU s"])
        for title, command in cases.items():
            cpu_seconds(command, folder)  # compiles bytecode, and fills the cache
            seconds = median(cpu_seconds(command, folder) for _ in range(options.runs))
            print_row([title, f"{seconds:.2f}"])
        if (java_version() or 0) >= OLDEST_JAVA:
            command = [*run, "--runner", "spark", "top.rspql"]
            first = cpu_seconds(command, folder)
            print_row(["`rsp run --runner spark`, which archives classes", f"{first:.1f}"])
            seconds = median(cpu_seconds(command, folder) for _ in range(options.runs))
            print_row(["`rsp run --runner spark`, later", f"{seconds:.1f}"])
        else:
            print(f"left out: Spark, since Java {OLDEST_JAVA} or later is not installed")
        print()
        imports = dearest(cases["`rsp run`, top-k"], folder)
        rows = [(f"`{n}`", f"{own:.1f}", f"{whole:.1f}") for n, own, whole in imports]
        print_table(["import of `rsp run`", "ms", "ms with imports below it"], rows)


if __name__ == "__main__":
    main()
