"""Streams and queries as plain data: what they are, and how they do."""

from __future__ import annotations

import base64
import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from rsp_engine.io.sources.live.log.log_reader import LogReader
from rsp_engine.plan.explain.text import operator_of, window_text
from rsp_engine.server.diagnostics import diagnostics_as_data
from rsp_engine.server.groups.committed_log import close_of
from rsp_engine.server.streams import KEEP_ANSWERS_MS, MOST_SEARCHED, MOST_SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rsp_engine.server.catalog import Catalog, Job, RegisteredQuery
    from rsp_engine.server.groups.group import WorkerGroup
    from rsp_engine.server.streams import DeclaredStream

__all__ = [
    "describe_answers",
    "describe_registered",
    "describe_stream",
    "letters_of",
    "query_state",
]

_FIGURES = "windows rows exact budget_spent requests cold_misses stale".split()


def query_state(query: RegisteredQuery) -> tuple[str, str | None]:
    """Return the state of a query, and the reason for it."""
    if query.is_paused:
        return "paused", None
    group = query.job.group
    return ("starting" if group.state == "stopped" else group.state), group.reason


def describe_stream(stream: DeclaredStream, catalog: Catalog) -> dict[str, Any]:
    """Return a declared stream, with its figures and its readers."""
    data, reading = stream.as_data(), _reading(stream.iri, stream.name, catalog)
    if data["elements"] is not None:
        reading["dead_letters"] += data["unreadable"]
    return {**data, **reading}


def describe_answers(job: Job, name: str, catalog: Catalog, keep: int) -> dict[str, Any]:
    """Return the answers of a query as a stream of a name."""
    reader, greatest = job.stream.reader, job.stream.greatest()
    end = reader.end()
    return {
        **job.stream.as_data(),
        "name": name,
        "source": f"the answers of {name}",
        "elements": end.number,
        "messages": end.number,
        "watermark": greatest,
        "lag": _lag(greatest),
        "log": {
            "first": reader.first(),
            "last": end.number,
            "bytes": end.offset - reader.starts()[0],
            "files": len(reader.starts()),
            "least": None,
            "greatest": greatest,
            "kept_from": reader.index().removed.greatest,
        },
        "keep": {"bytes": keep, "time": KEEP_ANSWERS_MS},
        **_reading(job.stream.iri, name, catalog),
    }


def _lag(instant: int | None) -> int | None:
    return None if instant is None else int(time.time() * 1000) - instant


def _reading(iri: str, name: str, catalog: Catalog) -> dict[str, Any]:
    """Return who reads a stream, and what readers have set aside of it."""
    letters: Counter[str] = Counter()
    readers = catalog.readers(iri)
    for group in dict.fromkeys(query.job.group for query in readers):
        for stream, kind, count in group.report.get("letters", ()):
            if stream == name:
                letters[kind] += count
    return {
        "late": letters["late"],
        "dead_letters": sum(letters.values()),
        "readers": [query.name for query in readers],
    }


def letters_of(stream: DeclaredStream, catalog: Catalog, count: int) -> list[dict[str, Any]]:
    """Return the last dead letters of a stream: its own, and those of its readers."""
    found = stream.letters(count)
    readers = {query.job.group: query.name for query in catalog.readers(stream.iri)}
    for group, reader in readers.items():
        found += list(_set_aside(group.folder / "letters", stream.name, reader))[-count:]
    return sorted(found, key=lambda letter: letter["arrival"] or 0)[-count:] if count else []


def _set_aside(folder: Path, stream: str, reader: str) -> Iterator[dict[str, Any]]:
    """Yield the dead letters of a stream among the last ones of a group."""
    log = LogReader(folder, "letters")
    try:
        records = log.last(MOST_SEARCHED) if folder.is_dir() else []
    finally:
        log.close()
    for record in records:
        letter = json.loads(record.message.payload)
        if letter["stream"] != stream:
            continue
        raw = letter.get("raw")
        data = base64.b64decode(letter["raw_base64"]) if raw is None else raw.encode()
        yield {
            "number": letter["position"],
            "arrival": record.arrival,
            "kind": letter["kind"],
            "reason": letter["reason"],
            "bytes": len(data),
            "payload": data[:MOST_SHOWN].decode(errors="replace"),
            "query": reader,
        }


def describe_registered(query: RegisteredQuery, catalog: Catalog) -> dict[str, Any]:
    """Return a query, with its state and its figures."""
    registration, job, plan = query.registration, query.job, query.plan
    physical, modifiers = plan.physical, plan.query.form.modifiers
    content = physical.operator.query
    state, reason = query_state(query)
    equal = [other.name for other in catalog.queries_of(job) if other is not query]
    readable = catalog.readable()
    return {
        "name": query.name,
        "iri": physical.name,
        "text": registration.text,
        "form": content.form,
        "r2s": physical.r2s,
        "operator": operator_of(plan)[0],
        "ranked": bool(modifiers.order_by) and modifiers.limit is not None,
        "limit": None if modifiers.limit is None else modifiers.limit.value,
        "variables": list(content.variables),
        "prefixes": dict(plan.query.prefixes),
        "group": registration.group or query.name,
        "start": {"requested": registration.start, "after": query.after},
        "options": dict(registration.bindings.options),
        "services": [
            {
                "service": service.pattern.service,
                "url": registration.bindings.services.get(service.pattern.service),
                "policy": service.policy.name,
                "budget": service.options.most_keys if service.policy.is_bounded else None,
            }
            for service in physical.services
        ],
        "windows": [
            {"name": scan.window, "stream": scan.stream, "size": window_text(scan)}
            for scan in physical.scans
        ],
        "streams": [readable.get(iri, iri) for iri in job.reads],
        "feeds": physical.feeds,
        "created": query.created,
        "state": state,
        "reason": reason,
        "equal_to": equal[0] if equal else None,
        "warnings": diagnostics_as_data(plan.warnings, registration.text, "warning"),
        "answers": _answers(query),
        "status": _status(job.group, job.name),
    }


def _answers(query: RegisteredQuery) -> dict[str, Any]:
    """Return the ids of the answers that are kept; those of an equal query may begin later."""
    reader = query.job.stream.reader
    first, end = reader.first(), reader.end()
    last = reader.last(1)
    is_empty = not last or (query.after is not None and close_of(last[0]) <= query.after)
    return {
        "first": None if is_empty else first,
        "last": None if is_empty else end.number,
        "bytes": end.offset - reader.starts()[0],
    }


def _status(group: WorkerGroup, name: str) -> dict[str, Any]:
    report = group.report
    own = report.get("queries", {}).get(name, {})
    counts = report.get("counts", {})
    letters = counts.get("dead", {})
    evaluation = own.get("evaluation", {"count": 0, "total": 0.0})
    watermark = own.get("watermark")
    rate, answer_rate = group.rates if group.state == "running" else (0.0, 0.0)
    return {
        **{figure: own.get(figure, 0) for figure in _FIGURES},
        "elements": counts.get("elements", 0),
        "triples": counts.get("triples", 0),
        "between_windows": counts.get("between_windows", 0),
        "late": letters.get("late", 0),
        "dead_letters": letters,
        "watermark": watermark,
        "lag": _lag(watermark),
        "rate": rate,
        "answer_rate": answer_rate,
        "last_window": own.get("last_window"),
        "last_exact": own.get("last_exact"),
        "refreshed": own.get("refreshed", {}),
        "faults": own.get("faults", {}),
        "evaluation": {
            "count": evaluation["count"],
            "mean": evaluation["total"] / evaluation["count"] if evaluation["count"] else 0.0,
            "last": own.get("last_seconds"),
        },
        "memory": group.memory,
        "cpu": report.get("cpu"),
        "restarts": group.restarts,
        "pid": group.pid,
        "reported": None if group.reported is None else int(group.reported * 1000),
    }
