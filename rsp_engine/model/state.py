"""States of operators: plain data that can be written, read back and restored from."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["StateData", "check_header", "damage_guard", "with_header"]

StateData = dict[str, Any]
"""Dictionaries, lists, numbers, texts and truth values: what JSON can hold."""

_VERSION = 1


def with_header(operator: str, config: dict[str, Any], content: StateData) -> StateData:
    """Return a state that says what it is of."""
    return {"operator": operator, "version": _VERSION, "config": config, **content}


def check_header(state: StateData, operator: str, config: dict[str, Any]) -> StateData:
    """Return a state, or raise what it is of instead."""
    if state.get("operator") != operator:
        raise StateError(f"this is a state of {state.get('operator')}, not of {operator}")
    if state.get("version") != _VERSION:
        raise StateError(f"this state has version {state.get('version')}, not {_VERSION}")
    saved = state.get("config")
    if saved != config:
        known = saved if isinstance(saved, dict) else {}
        name = next((n for n in (*config, *known) if known.get(n) != config.get(n)), "all of it")
        was, found = (shown.get(name) for shown in (known, config))
        raise StateError(
            f"this state belongs to another configuration: {name} was {was!r}, and is {found!r}",
            "go on with the configuration that it was saved with, or start without the state",
        )
    return state


@contextmanager
def damage_guard(what: str) -> Iterator[None]:
    """Say of anything that goes wrong when a state is read that the state is damaged."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise StateError(
            f"the saved state of {what} is damaged: {type(error).__name__}: {error}",
            "go on from an earlier state, or start without one",
        ) from None
