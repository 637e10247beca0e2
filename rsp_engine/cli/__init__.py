"""The command line: `rsp` and its subcommands, one per file."""

from rsp_engine.cli.app import app, main

__all__ = ["app", "main"]
