"""Policy files: a policy of the user's own, named as `path/to/file.py:NAME`.

The file is run once per process, as a Python module of its own, and again when it was changed. So
it must exist wherever the policy is named: each process of an experiment imports it.
"""

from __future__ import annotations

import sys
import traceback
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["POLICY_TEMPLATE", "is_policy_file", "object_of_file"]

_MARK = ".py:"

POLICY_TEMPLATE = '''\
"""A refresh policy. Run it with --policy {file}:MY_POLICY"""

import numpy as np

from rsp_engine.policies import RankedPolicy


def old_at_the_top(candidates, entries, now, seed):
    """Order the candidates, most preferred first: here by age divided by place."""
    places = np.arange(1, len(candidates) + 1)  # candidates come best first
    ages = now - entries.last_refresh  # in milliseconds of event time
    return np.argsort(-ages / places, kind="stable")


MY_POLICY = RankedPolicy(
    name="AT-MINE",
    summary="old values near the top",
    section="my notes",
    proposer="list",  # or "window": all keys of the window
    ranker=old_at_the_top,
)
'''
"""A file with a policy, to start from."""


def is_policy_file(text: str) -> bool:
    """Return whether a text names a policy of a file.

    >>> is_policy_file("mine.py:MY_POLICY"), is_policy_file("AT-VOI+wp=4")
    (True, False)
    """
    return _MARK in text or text.endswith(_MARK[:-1])


def object_of_file(text: str) -> Any:  # noqa: ANN401 - whatever the user has defined
    """Return the object that `FILE.py:NAME` names; raise `BindingError` if there is none."""
    path, _, name = text.rpartition(":")
    if not path or not path.endswith(_MARK[:-1]):
        raise BindingError(f"{text} names no policy of the file", f"write {text}:NAME")
    place = Path(path).resolve()
    if not place.is_file():
        raise BindingError(f"there is no file {path}", "`rsp policies new FILE` writes one")
    module = _module(str(place), place.stat().st_mtime_ns)
    if not hasattr(module, name):
        names = [known for known, value in vars(module).items() if _is_policy(value)]
        hint = f"it has {', '.join(names)}" if names else "it has no policy at all"
        raise BindingError(f"{path} has no policy {name}", hint)
    return getattr(module, name)


def _is_policy(value: object) -> bool:
    """Return whether a value looks like a policy: it has a name, and elects."""
    is_named = isinstance(getattr(value, "name", None), str) and not isinstance(value, type)
    return is_named and callable(getattr(value, "elect", None))


@lru_cache(maxsize=64)
def _module(place: str, _changed: int) -> ModuleType:
    """Import the file at a place: once, until it is changed."""
    name = f"rsp_policy_file_{place}"
    spec = spec_from_file_location(name, place)
    assert spec is not None  # noqa: S101 - the name ends with .py
    assert spec.loader is not None  # noqa: S101
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        lines = [
            at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == place
        ]
        line = error.lineno if isinstance(error, SyntaxError) else next(iter(lines), None)
        where = "" if line is None else f", line {line}"
        reason = f"{type(error).__name__}: {error}"
        raise BindingError(f"{place}{where}: the file cannot be imported: {reason}") from error
    return module
