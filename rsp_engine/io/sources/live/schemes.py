"""The registry of live protocols by URL scheme, with their options and required extras."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from rsp_engine.errors import SourceError
from rsp_engine.io.kafka_settings import client_settings, topic_of
from rsp_engine.io.sources.files.rdf import GRAPH_FORMATS
from rsp_engine.io.sources.live.address import Address, address_of
from rsp_engine.io.sources.live.receiver import LARGEST_MESSAGE
from rsp_engine.io.sources.live.spooled import ROOM, Settings, SpooledSource
from rsp_engine.io.sources.spec import nearest, need
from rsp_engine.io.sources.times import TIME_UNITS, from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.io.sources.live.deduplicator import DuplicateRule
    from rsp_engine.io.sources.live.kafka.watch import Start
    from rsp_engine.io.sources.live.payloads import Payloads
    from rsp_engine.io.sources.live.receiver import Link
    from rsp_engine.io.sources.live.source import LiveSource
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.times import TimeUnit

    LinkFactory = Callable[[Path, bool], Link]
    Opener = Callable[[Spec, Address, Payloads], LiveSource]

__all__ = ["PUSH", "SCHEMES", "Scheme", "is_live_url", "open_live", "payloads_of"]

OPTIONS = {
    "format": "the syntax of messages: jsonl, one of RDF, or json or csv with a template",
    "time": "payload or arrival (Kafka: payload, broker, key or header:NAME): where the time is;"
    " with a template also the path of a field",
    "unit": "ms, s, us or ns: what a time that is a number counts",
    "idle": "how long without messages until other streams stop waiting for it: 10s",
    "ahead": "how far ahead of its arrival a time can be: 10m",
    "largest": "how many bytes a message may have",
}
"""The options of every live source."""
TEMPLATE_OPTIONS = {
    "template": "json and csv: a Turtle file with {path.to.field} where a value goes",
    "delimiter": "csv: the character between fields, or the word tab",
    "columns": "csv: the names of the columns, joined by commas, if the first row is data",
}
"""The options of messages that are plain JSON or rows."""
SPOOL_OPTIONS = {
    "dedup": "id, content or none: how duplicates are recognised",
    "room": "how many bytes of messages can wait on disk",
}
"""The options of sources whose messages are spooled."""

HEADER = "header:"
"""The start of a time that is in a header; its name follows."""
_TIMES = ("payload", "arrival")
_LARGEST_FILE = 256 << 20
_LOCAL = ("watch", "log")
"""The schemes whose addresses are folders."""
_PLAIN = ("json", "csv")
_FORMATS = (
    "jsonl",
    "jelly",
    *_PLAIN,
    *dict.fromkeys(name for name in GRAPH_FORMATS if "/" not in name),
)
_NAMES = {"nq": "nquads", "n-quads": "nquads"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A protocol: its opener, its options with help, and the extra it requires."""

    open: Opener
    options: Mapping[str, str]
    times: tuple[str, ...]
    """Where the time of a message can be; the first is the default."""
    extra: str | None = None
    module: str | None = None


def _mqtt(spec: Spec, address: Address) -> LinkFactory:
    if not address.path:
        hint = "write it after the host: mqtt://host/factory/+/vibration"
        raise SourceError(f"{spec.name}: it names no topic", hint)
    *levels, last = address.path.split("/")
    odd = [each for each in levels if "#" in each or ("+" in each and each != "+")]
    if odd or any(sign in last and last != sign for sign in "#+"):
        hint = "+ stands for one whole level, and # for all levels at the end"
        raise SourceError(f"{spec.name}: it is no filter of topics", hint)
    version = int(spec.choice("version", ("5", "3")))
    address.tls(), address.user()  # report configuration errors before the run starts

    def connect(folder: Path, is_kept: bool) -> Link:
        from rsp_engine.io.sources.live.mqtt import MqttLink, client_name

        name = spec.options.get("client") or client_name(folder)
        return MqttLink(address, version, name, is_kept=is_kept)

    return connect


def _websocket(spec: Spec, address: Address) -> LinkFactory:
    address.tls(), address.headers()

    def connect(_folder: Path, _is_kept: bool) -> Link:
        from rsp_engine.io.sources.live.websocket import WebSocketLink

        return WebSocketLink(address, spec.options.get("resume"))

    return connect


def _sse(_spec: Spec, address: Address) -> LinkFactory:
    address.tls(), address.headers()

    def connect(_folder: Path, _is_kept: bool) -> Link:
        from rsp_engine.io.sources.live.sse import SseLink

        return SseLink(address)

    return connect


def _watch(spec: Spec, address: Address) -> LinkFactory:
    folder = Path(address.path)
    if not folder.is_dir():
        raise SourceError(f"{spec.name}: there is no such folder", "check the path")

    def connect(_folder: Path, _is_kept: bool) -> Link:
        from rsp_engine.io.sources.live.folder import FolderLink

        return FolderLink(folder)

    return connect


def _no_link(spec: Spec, _address: Address) -> LinkFactory:
    raise SourceError(f"{spec.name}: its elements come by HTTP, to `rsp serve`")


_CLIENT = {
    "client": "the name by which the broker knows the session",
    "version": "5 or 3: the version of MQTT",
}
_KAFKA_OPTIONS = {
    "start": "earliest, latest or a time: where to start without a checkpoint",
    "group": "the consumer group to which the offsets are committed, for lag monitors",
}
_RESUME = {"resume": "the URL parameter with the id after which the server resumes"}


def is_live_url(place: str) -> bool:
    """Return whether a place is the URL of a live source.

    >>> is_live_url("mqtt://host/topic"), is_live_url("http://host/file.nq")
    (True, False)
    """
    return place.partition("://")[0].lower() in SCHEMES and "://" in place


def open_live(spec: Spec) -> LiveSource:
    """Return a source that is not yet started; raise `SourceError` for invalid options."""
    scheme = SCHEMES[spec.place.partition("://")[0].lower()]
    for option in spec.options:
        if option not in scheme.options:
            known = scheme.options
            hint = nearest(option, known) or f"the options are: {', '.join(known)}"
            raise SourceError(f"{spec.name}: there is no option {option}", hint)
    if scheme.extra is not None and scheme.module is not None:
        need(spec.name, scheme.extra, scheme.module)
    address = _address(spec.place)
    return scheme.open(spec, address, payloads_of(spec, scheme))


def payloads_of(spec: Spec, scheme: Scheme) -> Payloads:
    """Return the format of messages, by the options of their source."""
    # They import the readers of all formats.
    from rsp_engine.io.sources.files.csv_table import columns_of, delimiter_of
    from rsp_engine.io.sources.files.message_template import MessageTemplate
    from rsp_engine.io.sources.files.template import template_of
    from rsp_engine.io.sources.live.payloads import Payloads

    name = spec.choice("format", _FORMATS)
    if name == "jelly":
        need(spec.name, "jelly", "pyjelly")
    unit = cast("TimeUnit", spec.choice("unit", TIME_UNITS))
    ahead = spec.duration("ahead", "10m")
    if name not in _PLAIN:
        for option in TEMPLATE_OPTIONS:
            if option in spec.options:
                hint = f"the formats with a template are: {', '.join(_PLAIN)}"
                raise SourceError(f"{spec.name}: {name} takes no option {option}", hint)
        time = _time(spec, scheme.times)
        return Payloads(spec.name, _NAMES.get(name, name), time, ahead, unit)
    written = spec.options.get("time", "payload")
    is_given = written in scheme.times or (HEADER in scheme.times and written.startswith(HEADER))
    field = written if written != "payload" and not is_given else "timestamp"
    path, text = template_of(spec)
    return Payloads(
        spec.name,
        name,
        _time(spec, scheme.times) if is_given else "payload",
        ahead,
        unit,
        MessageTemplate(text, str(path), field),
        delimiter_of(spec),
        columns_of(spec),
    )


def _time(spec: Spec, known: tuple[str, ...]) -> str:
    """Return where the time of a message is, as `Payloads` takes it."""
    written = spec.options.get("time", known[0])
    if HEADER in known and written.startswith(HEADER):
        if written == HEADER:
            raise SourceError(f"{spec.name}: the option time names no header", "time=header:NAME")
        return written
    # The time that a broker gave a message is that of its arrival there.
    return {"broker": "arrival"}.get(chosen := spec.choice("time", known), chosen)


def _spooled(links: Callable[[Spec, Address], LinkFactory], largest: int) -> Opener:
    """Return a function that opens a source whose messages are spooled."""

    def open_spooled(spec: Spec, address: Address, payloads: Payloads) -> LiveSource:
        settings = Settings(
            cast("DuplicateRule", spec.choice("dedup", ("id", "content", "none"))),
            spec.duration("idle", "10s"),
            spec.bytes("largest", largest),
            spec.bytes("room", ROOM),
        )
        return SpooledSource(payloads, links(spec, address), settings)

    return open_spooled


def _open_kafka(spec: Spec, address: Address, payloads: Payloads) -> LiveSource:
    from rsp_engine.io.sources.live.kafka.client import TopicAddress
    from rsp_engine.io.sources.live.kafka.topic import TopicSource

    topic = TopicAddress(
        spec.name,
        topic_of(address),
        client_settings(address),
        address.variables,
        spec.options.get("group"),
        spec.bytes("largest", LARGEST_MESSAGE),
    )
    return TopicSource(topic, payloads, _start(spec), spec.duration("idle", "10s"))


def _open_log(spec: Spec, address: Address, _payloads: Payloads) -> LiveSource:
    from rsp_engine.io.sources.live.log.log_source import open_log

    return open_log(spec, address.path, _start(spec))


def _start(spec: Spec) -> Start:
    written = spec.options.get("start", "earliest")
    if written in ("earliest", "latest"):
        return cast("Start", written)
    try:
        return from_text(written)
    except ValueError as error:
        hint = "it is earliest, latest, or a time: 2024-03-01T09:00:02Z, or milliseconds"
        raise SourceError(f"{spec.name}: the time of the option start {error}", hint) from None


def _address(place: str) -> Address:
    scheme, _, path = place.partition("://")
    return Address(place, scheme, "", 0, path) if scheme in _LOCAL else address_of(place)


def _spooling(
    links: Callable[[Spec, Address], LinkFactory],
    own: Mapping[str, str] = MappingProxyType({}),
    extra: tuple[str | None, str | None] = (None, None),
    largest: int = LARGEST_MESSAGE,
) -> Scheme:
    """Return a protocol whose messages are spooled, with its own options."""
    return Scheme(
        _spooled(links, largest),
        {**OPTIONS, **TEMPLATE_OPTIONS, **SPOOL_OPTIONS, **own},
        _TIMES,
        *extra,
    )


_MQTT = _spooling(_mqtt, _CLIENT, ("mqtt", "paho"))
_WEBSOCKET = _spooling(_websocket, _RESUME, ("ws", "websockets"))
_SSE = _spooling(_sse)
_KAFKA = Scheme(
    _open_kafka,
    {**OPTIONS, **TEMPLATE_OPTIONS, **_KAFKA_OPTIONS},
    ("payload", "broker", "key", HEADER),
    "kafka",
    "confluent_kafka",
)
_LOG = Scheme(
    _open_log,
    {
        "start": "earliest, latest or a time: where to start without a checkpoint",
        "end": "never, or here: whether the stream ends where the log ends at the start",
        "idle": OPTIONS["idle"],
    },
    _TIMES,
)

PUSH = _spooling(_no_link)
"""The options of streams whose elements come by HTTP; they have no address."""

SCHEMES: Mapping[str, Scheme] = {
    "mqtt": _MQTT,
    "mqtts": _MQTT,
    "ws": _WEBSOCKET,
    "wss": _WEBSOCKET,
    "sse+http": _SSE,
    "sse+https": _SSE,
    "kafka": _KAFKA,
    "kafkas": _KAFKA,
    "watch": _spooling(_watch, largest=_LARGEST_FILE),
    "log": _LOG,
}
"""All live protocols, by URL scheme."""
