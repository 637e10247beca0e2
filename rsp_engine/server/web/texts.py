"""Queries that are only checked or explained, and the words of the language for editors."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rsp_engine.errors import Diagnostic, QueryError, RspError
from rsp_engine.grammar import tree, validate
from rsp_engine.grammar.builtins import BUILTINS
from rsp_engine.grammar.tree import AGGREGATE_NAMES
from rsp_engine.io.sources.spec import nearest
from rsp_engine.model.option import declared
from rsp_engine.options import (
    OPERATORS,
    RankingOptions,
    ServiceOptions,
    WindowOptions,
)
from rsp_engine.plan.explain.graph import plan_graph
from rsp_engine.plan.explain.svg import explain_svg
from rsp_engine.plan.explain.text import explain, explain_json
from rsp_engine.policies.registry import POLICIES
from rsp_engine.server.diagnostics import diagnostics_as_data
from rsp_engine.server.refusals import MalformedError
from rsp_engine.server.registration import BINDINGS, fields_of, plan_query, read_bindings

if TYPE_CHECKING:
    from collections.abc import Collection

    from rsp_engine.server.access import Access

__all__ = ["explained", "validated", "vocabulary"]

_FORMATS = {
    "text": "text/plain",
    "json": "application/json",
    "svg": "image/svg+xml",
    "graph": "application/json",
}
_WORD = re.compile(r'"([A-Z][A-Z_0-9]*)"i')


def validated(body: object, access: Access, streams: Collection[str]) -> dict[str, Any]:
    """Return the diagnostics of a query: of the grammar, of the rules, and of the planner."""
    data = fields_of(body, ("text", *BINDINGS), ("text",))
    text = data["text"]
    if not isinstance(text, str):
        raise MalformedError("text must be the text of a query")
    bindings = read_bindings(data, access)
    result = validate(text)
    found = diagnostics_as_data(result.errors, text, "error")
    found += diagnostics_as_data(result.warnings, text, "warning")
    if result.query is not None and not result.errors:
        try:
            plan_query(text, bindings)
        except QueryError as error:
            found = diagnostics_as_data(error.diagnostics, text, "error") + found
        except RspError as error:
            found.append(_at_start(error, text, "error"))
        found += _undeclared(result.query, text, streams)
    query = None if result.query is None else _outline(result.query)
    is_good = all(each["severity"] == "warning" for each in found)
    return {"ok": is_good, "diagnostics": found, "query": query}


def _at_start(error: RspError, text: str, severity: str) -> dict[str, Any]:
    """Return an error without a place as the diagnostic of the first word."""
    first = re.search(r"\S+", text)
    end = 0 if first is None else first.end()
    return {
        "severity": severity,
        "kind": "semantic",
        "message": error.message,
        "hint": error.hint,
        "line": 1,
        "column": 1,
        "start": 0,
        "end": end,
        "fix": None,
    }


def _undeclared(query: tree.QueryUnit, text: str, streams: Collection[str]) -> list[dict[str, Any]]:
    """Return warnings about windows on streams that are not declared."""
    own = None if query.register is None else getattr(query.register.name, "value", None)
    missing = [
        Diagnostic(
            "semantic",
            f"stream <{window.stream.value}> is not declared",
            window.stream.span,
            nearest(f"<{window.stream.value}>", [f"<{iri}>" for iri in streams])
            or "declare it: POST /streams",
        )
        for window in query.windows
        if window.stream.value not in streams and window.stream.value != own
    ]
    return diagnostics_as_data(missing, text, "warning")


def _outline(query: tree.QueryUnit) -> dict[str, Any]:
    name = None if query.register is None else query.register.name
    clauses = tree.find(query, tree.ServicePattern)
    return {
        "name": getattr(name, "value", None),
        "form": query.form.keyword,
        "prefixes": dict(query.prefixes),
        "streams": list(dict.fromkeys(w.stream.value for w in query.windows)),
        "windows": [window.window.value for window in query.windows],
        "services": [c.name.value for c in clauses if isinstance(c.name, tree.Iri)],
    }


def explained(body: object, access: Access) -> tuple[Any, str]:
    """Return the plan of a query in the format that a request asks for, and its media type."""
    data = fields_of(body, ("text", "format", *BINDINGS), ("text",))
    name, text = data.get("format", "json"), data["text"]
    if not isinstance(name, str) or name not in _FORMATS:
        raise MalformedError("there is no such format", f"the formats are {', '.join(_FORMATS)}")
    if not isinstance(text, str):
        raise MalformedError("text must be the text of a query")
    planned = plan_query(text, read_bindings(data, access))
    match name:
        case "text":
            shown: Any = explain(planned)
        case "svg":
            shown = explain_svg(planned)
        case "graph":
            shown = asdict(plan_graph(planned))
        case _:
            shown = explain_json(planned)
    return shown, _FORMATS[name]


@cache
def vocabulary() -> dict[str, Any]:
    """Return the words of the language, the policies and the options."""
    grammar = (files("rsp_engine.grammar") / "rspql.lark").read_text(encoding="utf-8")
    words = sorted(set(_WORD.findall(grammar)))
    functions = sorted({*BUILTINS, *AGGREGATE_NAMES})
    groups = (WindowOptions, RankingOptions, ServiceOptions)
    return {
        "keywords": [word for word in words if word not in functions],
        "functions": functions,
        "policies": [{"name": p.name, "summary": p.summary} for p in POLICIES.values()],
        "operators": list(OPERATORS),
        "options": [
            {
                "name": known.name,
                "title": group.title,
                "help": known.help,
                "default": known.default,
                "choices": list(known.choices),
            }
            for group in groups
            for known in declared(group)
        ],
        "formats": list(_FORMATS),
    }
