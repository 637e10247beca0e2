"""The command line: `rsp` and its subcommands, one per file."""

from rsp_engine.cli import demo as _demo
from rsp_engine.cli import doctor as _doctor
from rsp_engine.cli import experiment as _experiment
from rsp_engine.cli import explain as _explain
from rsp_engine.cli import policies as _policies
from rsp_engine.cli import replay as _replay
from rsp_engine.cli import run as _run
from rsp_engine.cli import validate as _validate
from rsp_engine.cli.app import app

__all__ = ["app", "main"]

COMMANDS = (_validate, _explain, _run, _replay, _demo, _experiment, _policies, _doctor)
main = app
