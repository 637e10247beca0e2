"""States of operators: plain data that can be written, read back and restored from."""

from __future__ import annotations

from typing import Any

from rsp_engine.errors import StateError

__all__ = ["State", "checked", "headed"]

State = dict[str, Any]
"""Dictionaries, lists, numbers, texts and truth values: what JSON can hold."""

_VERSION = 1


def headed(operator: str, config: dict[str, Any], content: State) -> State:
    """Return a state that says what it is of."""
    return {"operator": operator, "version": _VERSION, "config": config, **content}


def checked(state: State, operator: str, config: dict[str, Any]) -> State:
    """Return a state, or raise what it is of instead."""
    if state.get("operator") != operator:
        raise StateError(f"this is a state of {state.get('operator')}, not of {operator}")
    if state.get("version") != _VERSION:
        raise StateError(f"this state has version {state.get('version')}, not {_VERSION}")
    if state.get("config") != config:
        raise StateError(
            f"this state belongs to another configuration: {state.get('config')}, not {config}"
        )
    return state
