"""States of operators: plain data with a header, for checkpoints."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["StateData", "check_header", "damage_guard", "with_header"]

StateData = dict[str, Any]
"""Plain data that JSON can hold: dictionaries, lists, tuples, numbers, strings and booleans."""

_VERSION = 1


def with_header(operator: str, config: dict[str, Any], content: StateData) -> StateData:
    """Return a state with the tag and the configuration of its operator."""
    return {"operator": operator, "version": _VERSION, "config": config, **content}


def check_header(state: StateData, operator: str, config: dict[str, Any]) -> StateData:
    """Return a state; raise `StateError` if it is of another operator or configuration."""
    if state.get("operator") != operator:
        raise StateError(f"this is a state of {state.get('operator')}, not of {operator}")
    if state.get("version") != _VERSION:
        raise StateError(f"this state has version {state.get('version')}, not {_VERSION}")
    saved = state.get("config")
    if saved != config:
        old = saved if isinstance(saved, dict) else {}
        name = next((n for n in (*config, *old) if old.get(n) != config.get(n)), "all of it")
        raise StateError(
            f"this state belongs to another configuration: "
            f"{name} was {old.get(name)!r}, and is {config.get(name)!r}",
            "use the configuration that it was saved with, or start without the state",
        )
    return state


@contextmanager
def damage_guard(what: str) -> Iterator[None]:
    """Turn any error of the block, which restores a state, into a `StateError` of damage."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise StateError(
            f"the saved state of {what} is damaged: {type(error).__name__}: {error}",
            "resume from an earlier state, or start without one",
        ) from None
