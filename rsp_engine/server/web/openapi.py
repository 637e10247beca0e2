"""The description of the API (OpenAPI 3.1).

Each operation is described once, with the statuses that it may answer; a test compares it with the
routes, and another one sends requests that are made from it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from rsp_engine import __version__
from rsp_engine.server.pushes import MEDIA_TYPES
from rsp_engine.server.web.schemas import SCHEMAS

__all__ = ["description"]

_Data = dict[str, Any]

_PROBLEMS = {
    400: "The request is malformed.",
    401: "The token is missing or wrong.",
    403: "The host, the origin, or what the request names is not allowed.",
    404: "There is no such stream or query.",
    405: "The path has no such method.",
    409: "The request does not fit the present state.",
    413: "The body is too large.",
    415: "The body has a type that is not read.",
    422: "The query or the elements are wrong; the diagnostics say where.",
    503: "The server is stopping, or has too many open files.",
    507: "The disk is full.",
}
_USUAL = (400, 401, 403, 405, 413, 503)
_OF_ONE = (*_USUAL, 404)
_OF_TEXT = (*_USUAL, 415, 422)
_CHANGE = (409, 507)
_MADE_NAME = {"name": "$response.body#/name"}


def _ref(name: str) -> _Data:
    return {"$ref": f"#/components/schemas/{name}"}


def _listed(name: str, of: str) -> _Data:
    items = {"type": "array", "items": _ref(of)}
    return {"type": "object", "required": [name], "properties": {name: items}}


def _json(schema: _Data) -> _Data:
    return {"application/json": {"schema": schema}}


def _operation(
    name: str, summary: str, answers: dict[int, tuple[str, _Data]], problems: tuple[int, ...]
) -> _Data:
    responses: _Data = {
        str(status): {"description": text, **({"content": content} if content else {})}
        for status, (text, content) in answers.items()
    }
    problem = {"application/problem+json": {"schema": _ref("Problem")}}
    for status in sorted(set(problems) - answers.keys()):
        responses[str(status)] = {"description": _PROBLEMS[status], "content": problem}
    return {"operationId": name, "summary": summary, "responses": responses}


def _with_links(operation: _Data, *to: str) -> _Data:
    """Say which operations take the name of what is made."""
    links = {each: {"operationId": each, "parameters": _MADE_NAME} for each in to}
    for status in ("200", "201"):
        operation["responses"][status]["links"] = links
    return operation


def _body(content: _Data) -> _Data:
    return {"requestBody": {"required": True, "content": content}}


def _parameter(name: str, text: str, schema: _Data, place: str = "query") -> _Data:
    parameter = {"name": name, "in": place, "description": text, "schema": schema}
    return {**parameter, "required": True} if place == "path" else parameter


def _whole(least: int = 0, most: int | None = None) -> _Data:
    return {"type": "integer", "minimum": least, "maximum": (1 << 53) if most is None else most}


def _last(what: str, most: int) -> _Data:
    return _parameter("last", f"How many {what}.", _whole(0, most))


_NAME = _parameter("name", "The name.", {"type": "string", "minLength": 1}, "path")


def _streams() -> _Data:
    one = _json(_ref("Stream"))
    text = {"schema": {"type": "string"}}
    lists = {"type": "array", "items": {"type": "object"}}
    bodies: _Data = dict.fromkeys(MEDIA_TYPES, text)
    bodies["application/json"] = {"schema": {"oneOf": [{"type": "object"}, lists]}}
    time = {"type": "string", "examples": ["1700000000000", "2024-03-01T09:00:02Z"]}
    choice = {"type": "string", "enum": ["refuse", "keep"], "default": "refuse"}
    push: _Data = _operation(
        "pushElements",
        "Push elements; the answer comes when they are on disk.",
        {202: ("They are on disk.", _json(_ref("Taken")))},
        (*_OF_ONE, 415, 422, *_CHANGE),
    )
    push["parameters"] = [
        _parameter("malformed", "What becomes of elements that cannot be read.", choice),
        _parameter("timestamp", "The time of RDF that does not say it.", time),
        _parameter(
            "Idempotency-Key",
            "A key with which a request that is repeated counts once.",
            {"type": "string"},
            "header",
        ),
    ]
    return {
        "/streams": {
            "get": _operation(
                "listStreams",
                "List the streams.",
                {200: ("All streams.", _json(_listed("streams", "Stream")))},
                _USUAL,
            ),
            "post": {
                **_with_links(
                    _operation(
                        "declareStream",
                        "Declare a stream.",
                        {200: ("It is there already.", one), 201: ("It is declared.", one)},
                        (*_OF_TEXT, *_CHANGE),
                    ),
                    *("showStream", "pushElements", "lastElements", "lastDeadLetters"),
                    "deleteStream",
                ),
                **_body(_json(_ref("Declaration"))),
            },
        },
        "/streams/{name}": {
            "parameters": [_NAME],
            "get": _operation(
                "showStream", "Describe a stream.", {200: ("The stream.", one)}, _OF_ONE
            ),
            "delete": _operation(
                "deleteStream",
                "Delete a stream that no query reads, with its log.",
                {204: ("It is deleted.", {})},
                (*_OF_ONE, *_CHANGE),
            ),
        },
        "/streams/{name}/elements": {
            "parameters": [_NAME],
            "get": {
                **_operation(
                    "lastElements",
                    "Show the last messages of a stream.",
                    {200: ("The messages.", _json(_listed("elements", "Message")))},
                    (*_OF_ONE, 409),
                ),
                "parameters": [_last("messages", 1000)],
            },
            "post": {**push, **_body(bodies)},
        },
        "/streams/{name}/dead-letters": {
            "parameters": [_NAME],
            "get": {
                **_operation(
                    "lastDeadLetters",
                    "Show the last dead letters of a stream and of its readers.",
                    {200: ("The dead letters.", _json(_listed("dead_letters", "DeadLetter")))},
                    _OF_ONE,
                ),
                "parameters": [_last("dead letters", 1000)],
            },
        },
    }


def _queries() -> _Data:
    one = _json(_ref("Query"))
    return {
        "/queries": {
            "get": _operation(
                "listQueries",
                "List the queries.",
                {200: ("All queries.", _json(_listed("queries", "Query")))},
                _USUAL,
            ),
            "post": {
                **_with_links(
                    _operation(
                        "registerQuery",
                        "Register a query.",
                        {200: ("It is there already.", one), 201: ("It is registered.", one)},
                        (*_OF_TEXT, *_CHANGE),
                    ),
                    *("showQuery", "readAnswers", "pauseQuery", "resumeQuery", "deleteQuery"),
                ),
                **_body(_json(_ref("Registration"))),
            },
        },
        "/queries/{name}": {
            "parameters": [_NAME],
            "get": _operation(
                "showQuery", "Describe a query.", {200: ("The query.", one)}, _OF_ONE
            ),
            "delete": _operation(
                "deleteQuery",
                "Delete a query, with its answers.",
                {204: ("It is deleted.", {})},
                (*_OF_ONE, *_CHANGE),
            ),
        },
        "/queries/{name}/pause": {
            "parameters": [_NAME],
            "post": _operation(
                "pauseQuery",
                "Stop a query after its current micro-batch.",
                {200: ("The query.", one)},
                (*_OF_ONE, *_CHANGE),
            ),
        },
        "/queries/{name}/resume": {
            "parameters": [_NAME],
            "post": _operation(
                "resumeQuery",
                "Go on with a query that was paused, or has failed.",
                {200: ("The query.", one)},
                (*_OF_ONE, *_CHANGE),
            ),
        },
        "/queries/{name}/answers": {"parameters": [_NAME], "get": _answers()},
    }


def _answers() -> _Data:
    time = {"type": "integer", "minimum": -(1 << 53), "maximum": 1 << 53}
    operation = _operation(
        "readAnswers",
        "Read answers that are kept; as text/event-stream, answers as they come.",
        {
            200: (
                "The answers: as JSON, as the lines of `rsp run --format jsonl`, or as events"
                " `answer`, `state` and `gap`, whose ids are those of the answers.",
                {
                    **_json(_listed("answers", "Answer")),
                    "application/x-ndjson": {"schema": {"type": "string"}},
                    "text/event-stream": {"schema": {"type": "string"}},
                },
            )
        },
        _OF_ONE,
    )
    operation["parameters"] = [
        _last("of the last answers", 10_000),
        _parameter("from", "The least close of a window.", time),
        _parameter("to", "The greatest close of a window.", time),
        _parameter("after", "The id after which answers are sent.", _whole()),
        _parameter("limit", "How many answers at most.", _whole(0, 10_000)),
        _parameter(
            "Last-Event-ID",
            "The id of the last event that a client has: it gets those after it.",
            {"type": "string", "pattern": "^[0-9]{1,18}$"},
            "header",
        ),
    ]
    return operation


def _texts() -> _Data:
    explained = {
        **_json({"type": "object"}),
        "text/plain": {"schema": {"type": "string"}},
        "image/svg+xml": {"schema": {"type": "string"}},
    }
    return {
        "/validate": {
            "post": {
                **_operation(
                    "validateQuery",
                    "Check a query.",
                    {200: ("Its diagnostics.", _json(_ref("Validation")))},
                    _OF_TEXT,
                ),
                **_body(_json(_ref("Text"))),
            }
        },
        "/explain": {
            "post": {
                **_operation(
                    "explainQuery",
                    "Explain the plan of a query.",
                    {200: ("Its plan.", explained)},
                    _OF_TEXT,
                ),
                **_body(_json(_ref("Explanation"))),
            }
        },
        "/vocabulary": {
            "get": _operation(
                "listWords",
                "List the words of the language, the policies and the options.",
                {200: ("The words.", _json({"type": "object"}))},
                _USUAL,
            )
        },
    }


def _service() -> _Data:
    health = _json(_ref("Health"))
    stopping = {**health, "application/problem+json": {"schema": _ref("Problem")}}
    return {
        "/health": {
            "get": {
                **_operation(
                    "health",
                    "Say how the server is; it needs no token.",
                    {200: ("It serves.", health), 503: ("It is stopping.", stopping)},
                    _USUAL,
                ),
                "security": [],
            }
        },
        "/metrics": {
            "get": _operation(
                "metrics",
                "Send the metrics, as Prometheus reads them.",
                {200: ("The metrics.", {"text/plain": {"schema": {"type": "string"}}})},
                _USUAL,
            )
        },
        "/openapi.json": {
            "get": _operation(
                "describe",
                "Describe the API.",
                {200: ("This document.", _json({"type": "object"}))},
                _USUAL,
            )
        },
        "/session": {
            "post": {
                **_operation(
                    "openSession",
                    "Set a cookie with the token, for browsers.",
                    {204: ("The cookie is set.", {})},
                    (*_USUAL, 415),
                ),
                **_body(_json(_ref("Session"))),
                "security": [],
            }
        },
    }


@cache
def description() -> _Data:
    """Return the description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rsp-engine",
            "version": __version__,
            "description": "Streams and queries that come and go. Times are milliseconds since"
            " 1970. The server needs a token only where others can reach it.",
        },
        "paths": {**_streams(), **_queries(), **_texts(), **_service()},
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "rsp_token"},
            },
        },
        "security": [{}, {"token": []}, {"cookie": []}],
    }
