"""The extras: optional packages, one for each, and the command that installs it."""

from __future__ import annotations

import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["EXTRAS", "install_command"]

EXTRAS = {
    "demo": "oxigraph",
    "mqtt": "paho-mqtt",
    "ws": "websockets",
    "kafka": "confluent-kafka",
    "jelly": "pyjelly",
    "metrics": "prometheus-client",
    "plots": "matplotlib",
    "pandas": "pandas",
    "serve": "sse-starlette starlette uvicorn",
}
"""The packages of each extra, as pyproject.toml has them."""


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra for the Python that runs.

    It names the package itself: this works in a checkout and after an installation from a wheel,
    whether or not an index knows this project. It starts with `pip` only if the `pip` of the shell
    belongs to this Python.

    >>> install_command("mqtt").endswith("pip install paho-mqtt")
    True
    """
    packages = EXTRAS[extra]
    pip = shutil.which("pip")
    if pip is not None and Path(pip).parent == Path(sys.executable).parent:
        return f"pip install {packages}"
    python = shlex.quote(_short(Path(sys.executable)))
    if find_spec("pip") is None:  # as in an environment made by uv
        return f"uv pip install --python {python} {packages}"
    return f"{python} -m pip install {packages}"


def _short(path: Path) -> str:
    """Return a path relative to the current folder if it is below it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
