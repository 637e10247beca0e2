"""The metrics of a run, and a local HTTP endpoint from which Prometheus scrapes them.

Metrics are read from the run monitor at the time of a scrape; nothing is counted twice. Names and
labels contain no stream data and no secrets.
"""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, NamedTuple, cast

from rsp_engine.errors import BindingError
from rsp_engine.model.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import Metric

    from rsp_engine.monitor.histogram import Histogram
    from rsp_engine.monitor.run_monitor import DeliveryStatus, QueryStatistics, RunMonitor

__all__ = ["COUNTERS", "GAUGES", "HISTOGRAMS", "LabelledValues", "metric_families", "serve_metrics"]

LabelledValues = dict[tuple[str, ...], float]
"""Values by their labels."""


class Number(NamedTuple):
    """A counter or gauge: one number per set of labels."""

    help: str
    labels: tuple[str, ...]
    read: Callable[[RunMonitor], LabelledValues]


class Spread(NamedTuple):
    """A histogram per query."""

    help: str
    read: Callable[[QueryStatistics], Histogram]


def _total(read: Callable[[RunMonitor], float]) -> Callable[[RunMonitor], LabelledValues]:
    return lambda monitor: {(): read(monitor)}


def _per_query(read: Callable[[QueryStatistics], float]) -> Callable[[RunMonitor], LabelledValues]:
    return lambda monitor: {(name,): read(seen) for name, seen in monitor.queries.items()}


def _dead(monitor: RunMonitor) -> LabelledValues:
    return {(kind,): number for kind, number in monitor.dead.items()}


def _faults(monitor: RunMonitor) -> LabelledValues:
    return {
        (name, cause): number
        for name, seen in monitor.queries.items()
        for cause, number in seen.faults.copy().items()
    }


def _refreshed(monitor: RunMonitor) -> LabelledValues:
    return {
        (*where, outcome): number
        for where, outcomes in monitor.refreshed().items()
        for outcome, number in outcomes.items()
    }


def _beliefs(monitor: RunMonitor) -> LabelledValues:
    return {
        (name, model): value
        for name, seen in monitor.queries.items()
        for model, value in (seen.belief or {"models": {}})["models"].items()
    }


def _service_budgets(monitor: RunMonitor) -> LabelledValues:
    return {
        (service, what): number
        for service, keys in monitor.service_budgets.copy().items()
        for what, number in keys.copy().items()
    }


def _per_sink(read: Callable[[DeliveryStatus], float]) -> Callable[[RunMonitor], LabelledValues]:
    return lambda monitor: {(status.name,): read(status) for status in monitor.deliveries()}


def _watermarks(monitor: RunMonitor) -> LabelledValues:
    marks = monitor.watermarks().items()
    return {(name,): mark / 1000 for name, mark in marks if abs(mark) < inf}


def _input(place: int) -> Callable[[RunMonitor], LabelledValues]:
    def read(monitor: RunMonitor) -> LabelledValues:
        extent = monitor.extent()
        return {} if extent is None else {(extent.unit,): cast("int", extent[place])}

    return read


COUNTERS = {
    "rsp_elements": Number("Elements read.", (), _total(lambda w: w.elements)),
    "rsp_triples": Number("Triples read.", (), _total(lambda w: w.triples)),
    "rsp_between_windows": Number(
        "Elements that fell between two windows.", (), _total(lambda w: w.between_windows)
    ),
    "rsp_late_elements": Number(
        "Elements whose windows had all closed.", (), _total(lambda w: w.late)
    ),
    "rsp_dead_letters": Number("Dead letters, late elements included.", ("reason",), _dead),
    "rsp_windows": Number("Windows answered.", ("query",), _per_query(lambda q: q.windows)),
    "rsp_exact_windows": Number(
        "Windows with an exact answer: fetching every key would give the same.",
        ("query",),
        _per_query(lambda q: q.exact),
    ),
    "rsp_shared_windows": Number(
        "Windows on Spark that executors could evaluate, by who did: driver or executors.",
        ("by",),
        lambda w: {(by,): number for by, number in w.shared().items()},
    ),
    "rsp_rows": Number("Rows of answers.", ("query",), _per_query(lambda q: q.rows)),
    "rsp_budget_spent": Number(
        "Remote keys selected for fetching.", ("query",), _per_query(lambda q: q.budget_spent)
    ),
    "rsp_service_budget_keys": Number(
        "Keys of the budget of a service: given to evaluations, and spent by them.",
        ("service", "what"),
        _service_budgets,
    ),
    "rsp_requests": Number("Requests to services.", ("query",), _per_query(lambda q: q.requests)),
    "rsp_refreshed_keys": Number(
        "Remote keys fetched, by outcome: changed, unchanged or failed.",
        ("query", "service", "outcome"),
        _refreshed,
    ),
    "rsp_cold_misses": Number(
        "Keys of windows that the replica did not know.",
        ("query",),
        _per_query(lambda q: q.cold_misses),
    ),
    "rsp_stale_keys": Number(
        "Keys of windows past their best-before time.", ("query",), _per_query(lambda q: q.stale)
    ),
    "rsp_delivered_answers": Number(
        "Answers that a sink has acknowledged.", ("sink",), _per_sink(lambda s: s.delivered)
    ),
    "rsp_delivery_failures": Number(
        "Attempts to deliver answers that failed.", ("sink",), _per_sink(lambda s: s.failures)
    ),
    "rsp_faults": Number("Failures of services, by cause.", ("query", "cause"), _faults),
}
GAUGES = {
    "rsp_watermark_seconds": Number(
        "Watermark in seconds of event time since 1970.", ("query",), _watermarks
    ),
    "rsp_belief": Number(
        "Probability of each model of change, by the policy that learns it.",
        ("query", "model"),
        _beliefs,
    ),
    "rsp_undelivered_answers": Number(
        "Answers in the outbox of a sink.", ("sink",), _per_sink(lambda s: s.waiting)
    ),
    "rsp_delivery_lag_seconds": Number(
        "How long the first answer in the outbox of a sink has waited.",
        ("sink",),
        _per_sink(lambda s: s.lag or 0.0),
    ),
    "rsp_input_read": Number("How much of a finite input was read.", ("unit",), _input(0)),
    "rsp_input_size": Number("How large a finite input is.", ("unit",), _input(1)),
}
HISTOGRAMS = {
    "rsp_evaluation_seconds": Spread(
        "How long the evaluation of a window took, fetching included.", lambda q: q.evaluation
    ),
    "rsp_remote_age_seconds": Spread(
        "How old remote values in answers were, in event time.", lambda q: q.ages
    ),
}


def metric_families(monitor: RunMonitor, hide: Callable[[str], str]) -> Iterator[Metric]:
    """Yield the current values of all metrics; `hide` redacts the labels."""
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    def hidden(labels: Iterable[str]) -> list[str]:
        return [hide(label) for label in labels]

    for name, number in COUNTERS.items():
        counter = CounterMetricFamily(name, number.help, labels=number.labels)
        for labels, value in number.read(monitor).items():
            counter.add_metric(hidden(labels), value)
        yield counter
    for name, number in GAUGES.items():
        gauge = GaugeMetricFamily(name, number.help, labels=number.labels)
        for labels, value in number.read(monitor).items():
            gauge.add_metric(hidden(labels), value)
        yield gauge
    for name, spread in HISTOGRAMS.items():
        histogram = HistogramMetricFamily(name, spread.help, labels=["query"])
        for query, seen in monitor.queries.items():
            values = spread.read(seen)
            buckets = [(str(float(bound)), float(count)) for bound, count in values.at_most()]
            buckets.append(("+Inf", float(values.count)))
            histogram.add_metric(hidden([query]), buckets=buckets, sum_value=values.total)
        yield histogram


class _Collector:
    """The collector that the Prometheus client calls at each scrape."""

    def __init__(self, monitor: RunMonitor, hide: Callable[[str], str]) -> None:
        self._monitor, self._hide = monitor, hide

    def collect(self) -> Iterator[Metric]:
        """Yield the current values of all metrics."""
        return metric_families(self._monitor, self._hide)


@contextmanager
def serve_metrics(port: int, monitor: RunMonitor, hide: Callable[[str], str]) -> Iterator[int]:
    """Serve the metrics on a port of the loopback interface, and yield the port.

    0 selects a free port. Raise `BindingError` if the extra `metrics` is not installed, or the port
    is in use.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        hint = f"install it: {install_command('metrics')}"
        raise BindingError("--metrics-port needs the extra metrics", hint) from None
    registry = CollectorRegistry()
    registry.register(_Collector(monitor, hide))
    try:
        server, thread = start_http_server(port, "127.0.0.1", registry)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "choose another port; 0 picks a free one"
        raise BindingError(f"metrics cannot be served on port {port}: {reason}", hint) from None
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
