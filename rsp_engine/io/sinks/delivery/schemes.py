"""The registry of sinks by URL scheme, with their options and required extras."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from pyoxigraph import NamedNode

from rsp_engine.errors import RspError, SinkError
from rsp_engine.http_client.access import allowed_origin
from rsp_engine.io.sinks.delivery.message_sink import MessageSink
from rsp_engine.io.sinks.delivery.outbox import OUTBOX_ROOM, MemoryOutbox
from rsp_engine.io.sinks.format import (
    HeadedWriter,
    answer_writer,
    checked_format,
    graph_refusal,
)
from rsp_engine.io.sources.live.address import address_of
from rsp_engine.io.sources.spec import nearest, need
from rsp_engine.monitor.redaction import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rsp_engine.io.sinks.delivery.courier import Courier
    from rsp_engine.io.sinks.delivery.graph_store import WriteMode
    from rsp_engine.io.sinks.delivery.message_sink import MessageWriter
    from rsp_engine.io.sinks.delivery.outbox import Outbox
    from rsp_engine.io.sinks.format import ContentForm, SinkFormat
    from rsp_engine.io.sources.live.address import Address
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.options import TimeStyle

__all__ = ["SINK_SCHEMES", "SinkPlan", "SinkScheme", "plan_sink"]

OPTIONS = {
    "format": "the format of messages: one of those of files; that of --format if it is not set",
    "times": "ms or iso: how messages write times",
    "room": "how many bytes of answers can wait: 67108864, which are 64 MB",
}
"""The options of every sink that sends messages; a graph store has only the room."""


@dataclass(frozen=True, slots=True)
class SinkScheme:
    """A protocol: its courier, its own options with help, and the extra it requires."""

    courier: Callable[[Spec, Address, str], Callable[[], Courier]]
    """Checks an address, and returns what makes the courier, given the type of the content."""
    options: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None
    module: str | None = None
    takes_graphs: bool = False
    """Whether it takes graphs as they are, not messages in a format."""


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """A sink whose address and options are checked, and that is not opened yet."""

    name: str
    """The address without secrets."""
    kind: str
    """The format and the address, as checkpoints save them."""
    room: int
    _write: Callable[[], MessageWriter]
    _courier: Callable[[], Courier]

    def open(self, outbox: Outbox | None = None) -> MessageSink:
        """Open the sink with an outbox; one in memory by default."""
        box = MemoryOutbox(self.room) if outbox is None else outbox
        return MessageSink(self.name, self.kind, self._write(), box, self._courier())


def _mqtt(spec: Spec, address: Address, media_type: str) -> Callable[[], Courier]:
    address.check_single_topic()
    version = int(spec.choice("version", ("5", "3")))
    is_retained = spec.choice("retain", ("false", "true")) == "true"
    address.tls(), address.user()  # report configuration errors before the run starts

    def connect() -> Courier:
        from rsp_engine.io.sinks.delivery.mqtt import MqttBroker

        return MqttBroker(address, media_type, version, is_retained=is_retained)

    return connect


def _webhook(spec: Spec, address: Address, media_type: str) -> Callable[[], Courier]:
    timeout = _seconds(spec)
    address.tls(), address.headers()

    def connect() -> Courier:
        from rsp_engine.io.sinks.delivery.webhook import Webhook

        return Webhook(address, media_type, timeout)

    return connect


def _graph_store(spec: Spec, address: Address, _media_type: str) -> Callable[[], Courier]:
    timeout = _seconds(spec)
    address.tls(), address.headers()

    def connect() -> Courier:
        from rsp_engine.io.sinks.delivery.graph_store import GraphStore

        return GraphStore(address, timeout)

    return connect


def _kafka(_spec: Spec, address: Address, media_type: str) -> Callable[[], Courier]:
    from rsp_engine.io.kafka_settings import client_settings, topic_of

    topic_of(address), client_settings(address)

    def connect() -> Courier:
        from rsp_engine.io.sinks.delivery.kafka import KafkaTopic

        return KafkaTopic(address, media_type)

    return connect


_MQTT = {
    "retain": "true or false: whether the broker keeps the last answer for new subscribers",
    "version": "5 or 3: the version of MQTT",
}
_TIMEOUT = {"timeout": "how long a request may take: 30s"}
_GRAPHS = {
    "mode": "replace or add: what happens to the graph that is there",
    "graph": "the IRI of the graph; by default each window has its own",
}

SINK_SCHEMES: Mapping[str, SinkScheme] = {
    "mqtt": SinkScheme(_mqtt, _MQTT, "mqtt", "paho"),
    "mqtts": SinkScheme(_mqtt, _MQTT, "mqtt", "paho"),
    "http": SinkScheme(_webhook, _TIMEOUT),
    "https": SinkScheme(_webhook, _TIMEOUT),
    "sparql+http": SinkScheme(_graph_store, _GRAPHS | _TIMEOUT, takes_graphs=True),
    "sparql+https": SinkScheme(_graph_store, _GRAPHS | _TIMEOUT, takes_graphs=True),
    "kafka": SinkScheme(_kafka, {}, "kafka", "confluent_kafka"),
    "kafkas": SinkScheme(_kafka, {}, "kafka", "confluent_kafka"),
}
"""All protocols of sinks, by URL scheme."""


def plan_sink(
    spec: Spec,
    format: str,  # noqa: A002 - the users' word
    forms: Iterable[ContentForm],
    times: TimeStyle = "ms",
    allowed: Iterable[str] = (),
) -> SinkPlan:
    """Check the address and the options of a sink for the answers of queries of the given forms.

    Nothing is contacted. `allowed` lists the origins that may be; all may if it is empty.
    """
    try:
        return _plan(spec, format, list(forms), times, list(allowed))
    except RspError as error:
        raise SinkError(error.message, error.hint) from None


def _plan(
    spec: Spec,
    format: str,  # noqa: A002 - the users' word
    forms: list[ContentForm],
    times: TimeStyle,
    allowed: list[str],
) -> SinkPlan:
    address = address_of(spec.place, role="SINK")
    scheme = SINK_SCHEMES.get(address.scheme)
    if scheme is None:
        hint = nearest(address.scheme, SINK_SCHEMES) or f"the schemes are {', '.join(SINK_SCHEMES)}"
        raise SinkError(f"{spec.name}: there are no sinks of {address.scheme}://", hint)
    url = spec.place.removeprefix("sparql+")
    allowed_origin(url, allowed or [url], of_sink=True)
    known = {**({"room": OPTIONS["room"]} if scheme.takes_graphs else OPTIONS), **scheme.options}
    for option in spec.options:
        if option not in known:
            hint = nearest(option, known) or f"the options are: {', '.join(known)}"
            raise SinkError(f"{spec.name}: there is no option {option}", hint)
    if scheme.extra is not None and scheme.module is not None:
        need(spec.name, scheme.extra, scheme.module)
    room = spec.bytes("room", OUTBOX_ROOM)
    if scheme.takes_graphs:
        for form in forms:
            if form != "CONSTRUCT":
                raise graph_refusal(form)
        mode = cast("WriteMode", spec.choice("mode", ("replace", "add")))
        graph, courier = _graph(spec), scheme.courier(spec, address, "")
        named = "one for each window" if graph is None else graph
        kind = f"graphs ({mode} {named}) to {fingerprint(spec.place)}"
        return SinkPlan(spec.name, kind, room, lambda: _graph_writer(mode, graph), courier)
    name = spec.options.get("format", format)
    chosen = checked_format(name, forms)
    style = cast("TimeStyle", spec.choice("times", (times, *{"ms", "iso"} - {times})))
    answer_writer(chosen, style)  # which refuses times that the format does not have
    courier = scheme.courier(spec, address, chosen.media_type)
    return SinkPlan(
        spec.name,
        f"{name} to {fingerprint(spec.place)}",
        room,
        lambda: _message_writer(chosen, style),
        courier,
    )


def _graph_writer(mode: WriteMode, graph: NamedNode | None) -> MessageWriter:
    from rsp_engine.io.sinks.delivery.graph_store import GraphUpdates

    return GraphUpdates(mode, graph)


def _message_writer(chosen: SinkFormat, times: TimeStyle) -> MessageWriter:
    """Return what writes each answer as a message that can be read by itself."""
    writer = answer_writer(chosen, times)
    if isinstance(cast("object", writer), HeadedWriter) or not chosen.can_go_back:
        # Its later texts need the first one.
        return lambda answer, _: answer_writer(chosen, times)(answer)
    if (with_id := chosen.with_id) is not None:
        return lambda answer, name: with_id(str(writer(answer)), name)
    return lambda answer, _: writer(answer)


def _graph(spec: Spec) -> NamedNode | None:
    iri = spec.options.get("graph")
    if iri is None:
        return None
    try:
        return NamedNode(iri)
    except ValueError:
        hint = "write an absolute IRI, percent-encoded if it contains & or %"
        raise SinkError(f"{spec.name}: the option graph is no IRI: {iri}", hint) from None


def _seconds(spec: Spec) -> float:
    seconds = spec.duration("timeout", "30s") / 1000
    if not seconds:
        raise SinkError(f"{spec.name}: the option timeout must be positive")
    return seconds
