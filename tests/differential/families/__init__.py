"""Families of random cases: each draws a case from a source of chance."""

from __future__ import annotations

from tests.differential.families import (
    elements,
    groups,
    incomplete,
    late,
    ordering,
    pairs,
    services,
    window_variables,
    windows,
)

FAMILIES = {
    "order": ordering.draw,
    "groups": groups.draw,
    "element": elements.draw,
    "pairs": pairs.draw,
    "service": services.draw,
    "variable": window_variables.draw,
    "incomplete": incomplete.draw,
    "windows": windows.draw,
    "late": late.draw,
}
