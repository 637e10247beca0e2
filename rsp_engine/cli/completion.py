"""The completion of flags whose values are names of the engine.

A shell completes choices by itself, and file names where nothing else fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["COMPLETIONS"]


def _policies(incomplete: str) -> list[str]:
    from rsp_engine.policies.registry import POLICIES

    return _beginning(incomplete, POLICIES)


def _formats(incomplete: str) -> list[str]:
    from rsp_engine.io.sinks import FORMATS

    return _beginning(incomplete, FORMATS)


def _beginning(start: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(start)]


COMPLETIONS: Mapping[str, Callable[[str], list[str]]] = {
    "policy": _policies,
    "output_format": _formats,
}
"""The function that completes the value of an option, by the name of the option."""
