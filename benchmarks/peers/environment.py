"""The environments of peers: each gets a folder of its own, and is installed when it is needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.task import Task

__all__ = ["PEERS", "Peer", "UnavailableError", "last_message"]

PACKAGE = Path(__file__).parent
ENVIRONMENTS = PACKAGE / ".venv"


class UnavailableError(Exception):
    """A peer that cannot be installed or run, with the reason."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of this package, and what has to be installed for it.

    Without `requirements` it runs in the environment of the engine.
    """

    name: str
    title: str
    module: str
    requirements: tuple[str, ...] = ()

    def install(self) -> None:
        """Install the peer, unless it is there; raise UnavailableError if that fails."""
        stamp = self._folder / ".installed"
        if not self.requirements or (
            stamp.exists() and stamp.read_text().split() == list(self.requirements)
        ):
            return
        self._install()
        stamp.write_text(" ".join(self.requirements))

    def command(self, task: Task) -> list[str]:
        """Return the command that answers a task."""
        return [self._python, "-m", f"benchmarks.peers.{self.module}", task.text()]

    @property
    def _folder(self) -> Path:
        return ENVIRONMENTS / self.name

    @property
    def _python(self) -> str:
        return str(self._folder / "bin" / "python") if self.requirements else sys.executable

    def _install(self) -> None:
        run([sys.executable, "-m", "venv", "--clear", str(self._folder)])
        pip = [self._python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        run([*pip, *self.requirements])


class NodePeer(Peer):
    """A peer in JavaScript, whose requirements npm installs."""

    __slots__ = ()

    def install(self) -> None:
        """Install the peer, and put its program where it finds the modules that it imports."""
        super().install()
        shutil.copy(PACKAGE / self.module, self._folder)

    def command(self, task: Task) -> list[str]:
        """Return the command that answers a task."""
        return ["node", str(self._folder / self.module), task.text()]

    def _install(self) -> None:
        for program in ("node", "npm"):
            if shutil.which(program) is None:
                raise UnavailableError(f"{program} is not installed")
        self._folder.mkdir(parents=True, exist_ok=True)
        run(["npm", "install", "--silent", "--prefix", str(self._folder), *self.requirements])


def run(command: Sequence[str]) -> None:
    """Run a command of an installation; raise UnavailableError with its message if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        reason = last_message(done.stderr or done.stdout)
        raise UnavailableError(f"{Path(command[0]).name} failed: {reason}")


def last_message(text: str) -> str:
    """Return the last line that is neither empty nor indented, as frames of stacks are."""
    lines = [line for line in text.splitlines() if line and not line[0].isspace()]
    return lines[-1] if lines else "no message"


PEERS = {
    peer.name: peer
    for peer in (
        Peer("duckdb", "DuckDB, batch", "duckdb_sql", ("duckdb>=1.2",)),
        Peer("bytewax", "Bytewax, CSV", "bytewax_flow", ("bytewax>=0.21",)),
        Peer("reload", "Oxigraph, reloaded for each window", "oxigraph_reload"),
        Peer("spark", "Spark SQL, batch", "spark_sql"),
        Peer("pathway", "Pathway, CSV", "pathway_table", ("pathway>=0.21",)),
        Peer("flink", "Flink SQL, CSV", "flink_sql", ("apache-flink>=2.0", "setuptools<81")),
        NodePeer("rsp-js", "RSP-JS", "rsp_js.mjs", ("rsp-js@1", "n3@1")),
    )
}
