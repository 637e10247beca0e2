"""The metrics of the service, as Prometheus reads them: those of `rsp run`, and of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rsp_engine.server.service import StreamService

__all__ = ["METRICS", "exposition"]


class _Metric(NamedTuple):
    kind: str
    help: str
    read: Callable[[dict[str, Any]], Any]


_STATES = ("starting", "running", "paused", "restarting", "finished", "failed")
_OF_STREAMS = {
    "rsp_stream_elements_total": _Metric("counter", "Elements taken.", lambda s: s["elements"]),
    "rsp_stream_unreadable_total": _Metric(
        "counter", "Messages, or parts of them, that hold no element.", lambda s: s["unreadable"]
    ),
    "rsp_stream_repeated_total": _Metric(
        "counter", "Duplicates dropped since the server has started.", lambda s: s["repeated"]
    ),
    "rsp_stream_bytes": _Metric(
        "gauge", "The size of the log.", lambda s: s["log"] and s["log"]["bytes"]
    ),
    "rsp_stream_watermark_seconds": _Metric(
        "gauge",
        "The greatest event time, in seconds since 1970.",
        lambda s: None if s["watermark"] is None else s["watermark"] / 1000,
    ),
    "rsp_stream_connected": _Metric(
        "gauge",
        "Whether the broker or server of a stream is connected.",
        lambda s: None if s["connected"] is None else int(s["connected"]),
    ),
}
_OF_QUERIES = {
    "rsp_windows_total": _Metric("counter", "Windows answered.", lambda q: q["windows"]),
    "rsp_exact_windows_total": _Metric(
        "counter", "Windows answered exactly.", lambda q: q["exact"]
    ),
    "rsp_rows_total": _Metric("counter", "Rows of answers.", lambda q: q["rows"]),
    "rsp_elements_total": _Metric(
        "counter", "Elements read by the group of the query.", lambda q: q["elements"]
    ),
    "rsp_late_elements_total": _Metric(
        "counter", "Elements whose windows had all closed.", lambda q: q["late"]
    ),
    "rsp_budget_spent_total": _Metric(
        "counter", "Remote keys selected for fetching.", lambda q: q["budget_spent"]
    ),
    "rsp_requests_total": _Metric("counter", "Requests to services.", lambda q: q["requests"]),
    "rsp_cold_misses_total": _Metric(
        "counter", "Keys of windows that the replica did not know.", lambda q: q["cold_misses"]
    ),
    "rsp_stale_keys_total": _Metric(
        "counter", "Keys of windows past their best-before time.", lambda q: q["stale"]
    ),
    "rsp_faults_total": _Metric(
        "counter", "Failures of services.", lambda q: sum(q["faults"].values())
    ),
    "rsp_evaluation_seconds_sum": _Metric(
        "counter",
        "How long evaluations took.",
        lambda q: q["evaluation"]["mean"] * q["evaluation"]["count"],
    ),
    "rsp_evaluation_seconds_count": _Metric(
        "counter", "How many evaluations there were.", lambda q: q["evaluation"]["count"]
    ),
    "rsp_query_restarts_total": _Metric(
        "counter", "How often the process of the group was started again.", lambda q: q["restarts"]
    ),
    "rsp_query_memory_bytes": _Metric(
        "gauge", "The memory of the process of the group.", lambda q: q["memory"]
    ),
    "rsp_watermark_seconds": _Metric(
        "gauge",
        "Watermark in seconds of event time since 1970.",
        lambda q: None if q["watermark"] is None else q["watermark"] / 1000,
    ),
}


METRICS = frozenset({"rsp_up", "rsp_query_state", *_OF_STREAMS, *_OF_QUERIES})
"""The names of the metrics."""


def exposition(service: StreamService) -> str:
    """Return the text of the metrics."""
    streams, queries = service.streams(), service.queries()
    lines = [
        *_family("rsp_up", "gauge", "The server runs.", [({}, 1)]),
        *_per("stream", _OF_STREAMS, [(each["name"], each) for each in streams]),
        *_per("query", _OF_QUERIES, [(each["name"], each["status"]) for each in queries]),
        *_family(
            "rsp_query_state",
            "gauge",
            "The state of each query: 1 for that in which it is.",
            [
                ({"query": each["name"], "state": state}, int(each["state"] == state))
                for each in queries
                for state in _STATES
            ],
        ),
    ]
    return "".join(f"{line}\n" for line in lines)


def _per(
    label: str, metrics: dict[str, _Metric], items: list[tuple[str, dict[str, Any]]]
) -> Iterator[str]:
    for name, metric in metrics.items():
        values = (({label: item}, metric.read(data)) for item, data in items)
        yield from _family(name, metric.kind, metric.help, values)


def _family(
    name: str, kind: str, text: str, values: Iterable[tuple[dict[str, str], Any]]
) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        if value is not None:
            pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
