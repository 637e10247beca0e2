"""The schemas of what the API takes and returns (JSON Schema 2020-12)."""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMAS"]

_Data = dict[str, Any]

_TEXT: _Data = {"type": "string"}
_NUMBER: _Data = {"type": "number"}
_COUNT: _Data = {"type": "integer", "minimum": 0}
_TIME: _Data = {"type": "integer"}
_FLAG: _Data = {"type": "boolean"}
_ANY: _Data = {"type": "object"}
_NAME: _Data = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,63}$"}
_TEXTS: _Data = {"type": "object", "additionalProperties": _TEXT}
_LIST: _Data = {"type": "array", "items": _TEXT}


def _or_null(schema: _Data) -> _Data:
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _ref(name: str) -> _Data:
    return {"$ref": f"#/components/schemas/{name}"}


def _all_of(members: _Data) -> _Data:
    """Return the schema of an object that has all members."""
    return {"type": "object", "required": list(members), "properties": members}


def _taken(members: _Data, *needed: str) -> _Data:
    """Return the schema of a body: an object without other members."""
    return {
        "type": "object",
        "required": list(needed),
        "properties": members,
        "additionalProperties": False,
    }


_MAYBE_COUNT, _MAYBE_TIME, _MAYBE_TEXT = map(_or_null, (_COUNT, _TIME, _TEXT))

_BINDINGS: _Data = {
    "options": {
        "type": "object",
        "description": "Options of `rsp run` for windows, rankings and remote data.",
    },
    "services": {**_TEXTS, "description": "The endpoint of each SERVICE, by its IRI."},
    "modified": {**_TEXTS, "description": "The predicate of the last change, by service."},
    "graphs": {**_TEXTS, "description": "The file of each static graph, by its IRI."},
    "functions": {**_LIST, "description": "Definitions such as `F(?a, ?b) = ?a + ?b`."},
    "ranges": {
        "type": "object",
        "additionalProperties": {
            "type": "array",
            "items": _NUMBER,
            "minItems": 2,
            "maxItems": 2,
        },
        "description": "The least and the greatest value of a predicate.",
    },
}
_QUERY_TEXT: _Data = {
    **_TEXT,
    "examples": [
        "PREFIX : <http://example.org/> REGISTER RSTREAM :all AS SELECT ?s ?o"
        " FROM NAMED WINDOW :w ON :readings [RANGE 10s STEP 10s] WHERE { WINDOW :w { ?s ?p ?o } }"
    ],
}
_START: _Data = {
    "anyOf": [{"enum": ["now", "earliest"]}, _TIME, {"type": "string", "format": "date-time"}],
    "default": "now",
    "description": "Which windows are answered: those that close after it.",
}

_DECLARATION = _taken(
    {
        "name": _NAME,
        "iri": {**_TEXT, "examples": ["http://example.org/readings"]},
        "source": {**_TEXT, "default": "push"},
        "options": _TEXTS,
        "template": _TEXT,
        "keep": _taken(
            {
                "bytes": {"type": "integer", "minimum": 4096},
                "time": {"anyOf": [{"type": "integer", "minimum": 1000}, _TEXT]},
            }
        ),
    },
    "name",
    "iri",
)
_LOG = _all_of(
    {
        "first": _COUNT,
        "last": _COUNT,
        "bytes": _COUNT,
        "files": _COUNT,
        "least": _MAYBE_TIME,
        "greatest": _MAYBE_TIME,
        "kept_from": _MAYBE_TIME,
    }
)
_STREAM = _all_of(
    {
        "name": _TEXT,
        "iri": _TEXT,
        "kind": {"enum": ["push", "live", "kafka", "file", "query"]},
        "source": _TEXT,
        "options": _TEXTS,
        "template": _MAYBE_TEXT,
        "keep": _all_of({"bytes": _COUNT, "time": _COUNT}),
        "created": _TIME,
        "elements": _MAYBE_COUNT,
        "triples": _MAYBE_COUNT,
        "messages": _MAYBE_COUNT,
        "repeated": _MAYBE_COUNT,
        "unreadable": _MAYBE_COUNT,
        "rate": {**_NUMBER, "description": "Elements per second, over the last 10 seconds."},
        "watermark": {**_MAYBE_TIME, "description": "The greatest event time so far."},
        "lag": {**_MAYBE_TIME, "description": "The present minus the watermark."},
        "log": _or_null(_LOG),
        "connected": _or_null(_FLAG),
        "trouble": _MAYBE_TEXT,
        "late": _COUNT,
        "dead_letters": _COUNT,
        "readers": _LIST,
    }
)
_MESSAGE = _all_of(
    {
        "number": _COUNT,
        "arrival": _TIME,
        "id": _TEXT,
        "topic": _TEXT,
        "bytes": _COUNT,
        "payload": _TEXT,
        "timestamps": {"type": "array", "items": _TIME},
        "triples": _COUNT,
        "reason": _MAYBE_TEXT,
    }
)
_DEAD_LETTER = _all_of(
    {
        "number": _MAYBE_COUNT,
        "arrival": _MAYBE_TIME,
        "kind": _TEXT,
        "reason": _TEXT,
        "bytes": _COUNT,
        "payload": _TEXT,
        "query": {**_MAYBE_TEXT, "description": "The query that has set it aside."},
    }
)
_TAKEN = _all_of(
    {
        "accepted": _COUNT,
        "repeated": _COUNT,
        "set_aside": _COUNT,
        "first": _MAYBE_COUNT,
        "last": _MAYBE_COUNT,
    }
)
_COUNTS: _Data = {"type": "object", "additionalProperties": _COUNT}
_WINDOW = _all_of({"open": _TIME, "close": _TIME})
_STATUS = _all_of(
    {
        "windows": _COUNT,
        "rows": _COUNT,
        "exact": {**_COUNT, "description": "How many windows were answered exactly."},
        "budget_spent": _COUNT,
        "requests": _COUNT,
        "cold_misses": _COUNT,
        "stale": _COUNT,
        "elements": _COUNT,
        "triples": _COUNT,
        "between_windows": _COUNT,
        "late": _COUNT,
        "dead_letters": _COUNTS,
        "watermark": _MAYBE_TIME,
        "lag": _MAYBE_TIME,
        "rate": {**_NUMBER, "description": "Elements per second that its group reads."},
        "answer_rate": {**_NUMBER, "description": "Answers per second of its group."},
        "last_window": _or_null(_WINDOW),
        "last_exact": _or_null(_FLAG),
        "refreshed": {
            "type": "object",
            "additionalProperties": _COUNTS,
            "description": "Fetched keys of each service: changed, unchanged and failed.",
        },
        "faults": _COUNTS,
        "evaluation": _all_of({"count": _COUNT, "mean": _NUMBER, "last": _or_null(_NUMBER)}),
        "memory": _MAYBE_COUNT,
        "cpu": _or_null(_NUMBER),
        "restarts": _COUNT,
        "pid": _MAYBE_COUNT,
        "reported": _MAYBE_TIME,
    }
)
_DIAGNOSTIC = _all_of(
    {
        "severity": {"enum": ["error", "warning"]},
        "kind": _TEXT,
        "message": _TEXT,
        "hint": _MAYBE_TEXT,
        "line": _COUNT,
        "column": _COUNT,
        "start": {**_COUNT, "description": "An offset in UTF-16 code units, as in JavaScript."},
        "end": _COUNT,
        "fix": _or_null(_all_of({"start": _COUNT, "end": _COUNT, "text": _TEXT})),
    }
)
_DIAGNOSTICS: _Data = {"type": "array", "items": _ref("Diagnostic")}
_QUERY = _all_of(
    {
        "name": _TEXT,
        "iri": _TEXT,
        "text": _TEXT,
        "form": _TEXT,
        "r2s": _TEXT,
        "operator": _TEXT,
        "ranked": _FLAG,
        "limit": _MAYBE_COUNT,
        "variables": _LIST,
        "prefixes": _TEXTS,
        "group": _TEXT,
        "start": _all_of({"requested": {"type": ["string", "integer"]}, "after": _MAYBE_TIME}),
        "options": _ANY,
        "services": {
            "type": "array",
            "items": _all_of(
                {
                    "service": _TEXT,
                    "url": _MAYBE_TEXT,
                    "policy": _TEXT,
                    "budget": _MAYBE_COUNT,
                }
            ),
        },
        "windows": {
            "type": "array",
            "items": _all_of({"name": _TEXT, "stream": _TEXT, "size": _TEXT}),
        },
        "streams": _LIST,
        "feeds": _MAYBE_TEXT,
        "created": _TIME,
        "state": {
            "enum": ["starting", "running", "paused", "restarting", "finished", "failed", "deleted"]
        },
        "reason": {**_MAYBE_TEXT, "description": "Why it has failed, or is started again."},
        "equal_to": {**_MAYBE_TEXT, "description": "A query that is evaluated with it."},
        "warnings": _DIAGNOSTICS,
        "answers": _all_of({"first": _MAYBE_COUNT, "last": _MAYBE_COUNT, "bytes": _COUNT}),
        "status": _STATUS,
    }
)

SCHEMAS: _Data = {
    "Problem": {
        "type": "object",
        "description": "A problem document (RFC 9457).",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": _TEXT,
            "title": _TEXT,
            "status": {"type": "integer"},
            "detail": _TEXT,
            "hint": _TEXT,
            "diagnostics": _DIAGNOSTICS,
            "elements": {
                "type": "array",
                "items": _all_of({"index": _COUNT, "reason": _TEXT}),
            },
        },
    },
    "Diagnostic": _DIAGNOSTIC,
    "Declaration": _DECLARATION,
    "Stream": _STREAM,
    "Message": _MESSAGE,
    "DeadLetter": _DEAD_LETTER,
    "Taken": _TAKEN,
    "Registration": _taken(
        {"text": _QUERY_TEXT, "name": _NAME, "start": _START, "group": _NAME, **_BINDINGS}, "text"
    ),
    "Query": _QUERY,
    "Answer": _all_of({"id": _COUNT, "answer": _ANY}),
    "Text": _taken({"text": _QUERY_TEXT, **_BINDINGS}, "text"),
    "Explanation": _taken(
        {
            "text": _QUERY_TEXT,
            "format": {"enum": ["json", "text", "svg", "graph"], "default": "json"},
            **_BINDINGS,
        },
        "text",
    ),
    "Validation": _all_of({"ok": _FLAG, "diagnostics": _DIAGNOSTICS, "query": _or_null(_ANY)}),
    "Health": _all_of(
        {
            "status": {"enum": ["ok", "stopping"]},
            "version": _TEXT,
            "started": _TIME,
            "streams": _COUNT,
            "queries": _COUNTS,
        }
    ),
    "Session": _taken({"token": _TEXT}, "token"),
}
