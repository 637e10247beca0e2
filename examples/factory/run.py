"""A factory at work: sensors, a broker, an ERP, and the products that are at risk right now.

    python examples/factory/run.py [--seconds 60] [--policy AT-TSM] [--budget 5] [--runner local]
    python examples/factory/run.py --web    # in a browser, for ten minutes

Starts a real mosquitto and a real SPARQL server on free ports of this computer, lets machines shake
and instruments be maintained, ranks the products for a minute, and stops what it started.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from erp import evolving, install
from picture import draw
from plant import FACTORY, history

from rsp_engine import Client, Engine
from rsp_engine.model.answers import Solutions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.model.answers import Answer

HERE = Path(__file__).parent
TURTLE = {"format": "turtle"}
TOLD = {"oracle": True, "elected": True}
"""What answers tell of themselves: how right they are, and which machines were asked for."""


def main() -> None:
    """Run the factory for a while, and print the ranking of each window."""
    flags = argparse.ArgumentParser(description="Rank the products of a factory that are at risk.")
    flags.add_argument("--seconds", type=float, help="how long it runs: 60, or 600 with --web")
    flags.add_argument("--policy", default="AT-TSM", help="what elects the machines to ask for")
    flags.add_argument("--budget", type=int, default=5, help="how many a window may ask for")
    flags.add_argument("--runner", choices=["local", "spark"], default="local")
    flags.add_argument("--picture", type=Path, help="an SVG file to draw the run into")
    flags.add_argument("--web", action="store_true", help="show the console of `rsp serve`")
    given, _ = flags.parse_known_args()
    given.seconds = given.seconds or (600 if given.web else 60)
    if given.web and (given.picture is not None or given.runner != "local"):
        flags.error("--web excludes --picture and --runner spark")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = stack.enter_context(broker(folder))
        url = stack.enter_context(sparql_server())
        install(url)
        source = f"mqtt://127.0.0.1:{port}/factory/+/vibration"
        if given.web:
            stack.enter_context(evolving(url, history(given.seconds)))
            stack.enter_context(running(sensors(port, given.seconds)))
            show(given, folder, source, url)
            return
        engine = Engine(
            runner=given.runner, policy=given.policy, budget=given.budget, max_delay=1000
        )
        engine.service(f"{FACTORY}erp", f"{url}/query")
        engine.register_file(str(HERE / "ranking.rspql"))
        source += "?format=turtle"
        engine.bind(f"{FACTORY}vibrations", source)
        stack.enter_context(evolving(url, history(given.seconds)))
        stack.enter_context(running(sensors(port, given.seconds)))
        print(f"{source}\n{given.policy}, at most {given.budget} of 24 machines asked for a window")
        answers = ranked(engine, given.seconds)
    elements = engine.counts.elements
    print(f"\n{elements} readings, {len(answers)} windows")
    if given.picture is not None:
        draw(answers, given.picture)
        print(f"{given.picture} is drawn")


def sensors(port: int, seconds: float) -> list[str]:
    """Return the command that lets all sensors publish for a while."""
    return [sys.executable, str(HERE / "sensors.py"), "127.0.0.1", str(port), str(seconds)]


def show(given: argparse.Namespace, folder: Path, source: str, url: str) -> None:
    """Serve the console of a server that ranks by two policies, until the time is over."""
    port = free_port()
    broker = source.partition("/factory/")[0]
    flags = ["--data", str(folder / "served"), "--port", str(port), "--allow", url]
    command = [sys.executable, "-m", "rsp_engine.cli", "serve", *flags, "--allow", broker]
    address = f"http://127.0.0.1:{port}"
    with running(command), Client(address) as client:
        wait_for(port, "the server")
        client.declare("vibrations", f"{FACTORY}vibrations", source=source, options=TURTLE)
        text = (HERE / "ranking.rspql").read_text(encoding="utf-8")
        for policy in dict.fromkeys((given.policy, "WSJ-LRU")):
            options = {"policy": policy, "budget": given.budget, "max_delay": 1000, **TOLD}
            services = {f"{FACTORY}erp": f"{url}/query"}
            name = "ProductsAtRisk" if policy == given.policy else f"ProductsAtRisk-{policy}"
            client.submit(text, name=name, options=options, services=services)
        print(f"open {address}/#/ranking/ProductsAtRisk", flush=True)
        with suppress(KeyboardInterrupt):
            time.sleep(given.seconds)


def ranked(engine: Engine, seconds: float) -> list[Answer]:
    """Print answers as they come, until the time is over."""
    timer = threading.Timer(seconds, engine.stop)
    timer.start()
    answers = []
    try:
        for answer in engine.run():
            answers.append(answer)
            print(table(answer), flush=True)
    finally:
        timer.cancel()
    return answers


def table(answer: Answer) -> str:
    """Return an answer as lines: product, machine, how it shakes, when it was maintained."""
    stats = answer.stats
    closed = time.strftime("%H:%M:%S", time.localtime(answer.window.close / 1000))
    lines = [f"\n{closed}   asked for {stats['budget_spent']}, cold {stats['cold_misses']}"]
    for row in answer.content.rows if isinstance(answer.content, Solutions) else ():
        told = {name: term.value.rpartition("/")[2] for name, term in row.bindings.items()}
        age = "fresh" if not row.age else f"known for {row.age // 1000} s"
        lines.append(
            f"  {row.rank}. {told['product']:<12} {told['machine']:<10}"
            f" {told['vibration']:>6} mm/s   maintained {told['lastMaintenance']}"
            f"   risk {row.score:6.3f}   {age}"
        )
    return "\n".join(lines)


@contextmanager
def broker(folder: Path) -> Iterator[int]:
    """Start mosquitto on a free port of this computer, and stop it at the end."""
    program = shutil.which("mosquitto") or shutil.which(
        "mosquitto", path="/usr/sbin:/usr/local/sbin"
    )
    if program is None:
        raise SystemExit(
            "mosquitto is not installed. Install it:\n"
            "    sudo apt-get install mosquitto    (Debian, Ubuntu)\n"
            "    brew install mosquitto            (macOS)"
        )
    port, config = free_port(), folder / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n", encoding="utf-8")
    with running([program, "-c", str(config)]):
        wait_for(port, "the broker")
        yield port


@contextmanager
def sparql_server() -> Iterator[str]:
    """Start a SPARQL server on a free port of this computer, and stop it at the end."""
    program, port = str(Path(sysconfig.get_path("scripts")) / "oxigraph"), free_port()
    with running([program, "serve", "--bind", f"127.0.0.1:{port}"]):
        wait_for(port, "the SPARQL server")
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(command: Sequence[str]) -> Iterator[None]:
    """Run a program meanwhile."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=nothing, stderr=nothing)  # noqa: S603 - our own
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def free_port() -> int:
    """Return a port of this computer that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, what: str) -> None:
    """Wait until somebody listens on a port, for half a minute at most."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"{what} did not start")


if __name__ == "__main__":
    main()
