"""The command line: `rsp` and its subcommands, one per file."""

from __future__ import annotations

import gc
import os
from typing import Any

from rsp_engine.cli.app import app

__all__ = ["app", "main"]


def main(*arguments: Any, **settings: Any) -> Any:  # noqa: ANN401 - what typer takes and returns
    """Run the command `rsp`, in a process of its own."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the engine multiplies no matrices
    # To import modules and to run queries creates hardly any cyclic garbage.
    gc.set_threshold(50_000, 20, 100)
    return app(*arguments, **settings)
