"""The registry of live protocols by URL scheme, with their options and required extras."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rsp_engine.errors import SourceError
from rsp_engine.io.sources.files.rdf import GRAPH_FORMATS
from rsp_engine.io.sources.live.address import Address, address_of
from rsp_engine.io.sources.live.receiver import LARGEST_MESSAGE
from rsp_engine.io.sources.live.source import ROOM, LiveSource, Settings
from rsp_engine.io.sources.spec import nearest, need
from rsp_engine.io.sources.times import TIME_UNITS
from rsp_engine.model.durations import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rsp_engine.io.sources.live.deduplicator import DuplicateRule
    from rsp_engine.io.sources.live.payloads import TimeFrom
    from rsp_engine.io.sources.live.receiver import Link
    from rsp_engine.io.sources.spec import Spec
    from rsp_engine.io.sources.times import TimeUnit

    LinkFactory = Callable[[Path, bool], Link]

__all__ = ["SCHEMES", "Scheme", "is_live_url", "open_live"]

OPTIONS = {
    "format": "the syntax of messages: jsonl, or one of RDF",
    "time": "payload or arrival: where the time of an element comes from",
    "unit": "ms, s, us or ns: what a time that is a number counts",
    "dedup": "id, content or none: how duplicates are recognised",
    "idle": "how long without messages until other streams stop waiting for it: 10s",
    "ahead": "how far ahead of its arrival a time can be: 10m",
    "largest": "how many bytes a message may have",
    "room": "how many bytes of messages can wait on disk",
}
"""The options of every live source."""

_LARGEST_FILE = 256 << 20
_FORMATS = ("jsonl", "jelly", *dict.fromkeys(name for name in GRAPH_FORMATS if "/" not in name))
_NAMES = {"nq": "nquads", "n-quads": "nquads"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A protocol: its link factory, its own options with help, and the extra it requires."""

    link_factory: Callable[[Spec, Address], LinkFactory]
    options: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None
    module: str | None = None
    largest: int = LARGEST_MESSAGE


def _mqtt(spec: Spec, address: Address) -> LinkFactory:
    if not address.path:
        hint = "write it after the host: mqtt://host/factory/+/vibration"
        raise SourceError(f"{spec.name}: it names no topic", hint)
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


def _kafka(spec: Spec, address: Address) -> LinkFactory:
    if not address.path:
        hint = "write it after the host: kafka://host:9092/vibrations"
        raise SourceError(f"{spec.name}: it names no topic", hint)
    address.user()

    def connect(folder: Path, _is_kept: bool) -> Link:
        from rsp_engine.drivers.spark.kafka import KafkaLink

        return KafkaLink(address, folder)

    return connect


def _watch(spec: Spec, address: Address) -> LinkFactory:
    folder = Path(address.path)
    if not folder.is_dir():
        raise SourceError(f"{spec.name}: there is no such folder", "check the path")

    def connect(_folder: Path, _is_kept: bool) -> Link:
        from rsp_engine.io.sources.live.folder import FolderLink

        return FolderLink(folder)

    return connect


_CLIENT = {
    "client": "the name by which the broker knows the session",
    "version": "5 or 3: the version of MQTT",
}
_RESUME = {"resume": "the URL parameter with the id after which the server resumes"}

SCHEMES: Mapping[str, Scheme] = {
    "mqtt": Scheme(_mqtt, _CLIENT, "mqtt", "paho"),
    "mqtts": Scheme(_mqtt, _CLIENT, "mqtt", "paho"),
    "ws": Scheme(_websocket, _RESUME, "ws", "websockets"),
    "wss": Scheme(_websocket, _RESUME, "ws", "websockets"),
    "sse+http": Scheme(_sse),
    "sse+https": Scheme(_sse),
    "kafka": Scheme(_kafka),
    "kafkas": Scheme(_kafka),
    "watch": Scheme(_watch, largest=_LARGEST_FILE),
}
"""All live protocols, by URL scheme."""


def is_live_url(place: str) -> bool:
    """Return whether a place is the URL of a live source.

    >>> is_live_url("mqtt://host/topic"), is_live_url("http://host/file.nq")
    (True, False)
    """
    return place.partition("://")[0].lower() in SCHEMES and "://" in place


def open_live(spec: Spec) -> LiveSource:
    """Return a source that is not yet started; raise `SourceError` for invalid options."""
    # It imports the readers of all formats.
    from rsp_engine.io.sources.live.payloads import Payloads

    scheme = SCHEMES[spec.place.partition("://")[0].lower()]
    known = {**OPTIONS, **scheme.options}
    for option in spec.options:
        if option not in known:
            hint = nearest(option, known) or f"the options are: {', '.join(known)}"
            raise SourceError(f"{spec.name}: there is no option {option}", hint)
    if scheme.extra is not None and scheme.module is not None:
        need(spec.name, scheme.extra, scheme.module)
    address = _address(spec.place)
    name = spec.choice("format", _FORMATS)
    if name == "jelly":
        need(spec.name, "jelly", "pyjelly")
    time = cast("TimeFrom", spec.choice("time", ("payload", "arrival")))
    ahead = _duration(spec, "ahead", "10m")
    unit = cast("TimeUnit", spec.choice("unit", TIME_UNITS))
    payloads = Payloads(spec.name, _NAMES.get(name, name), time, ahead, unit)
    settings = Settings(
        cast("DuplicateRule", spec.choice("dedup", ("id", "content", "none"))),
        _duration(spec, "idle", "10s"),
        _bytes(spec, "largest", scheme.largest),
        _bytes(spec, "room", ROOM),
    )
    return LiveSource(payloads, scheme.link_factory(spec, address), settings)


def _address(place: str) -> Address:
    scheme, _, path = place.partition("://")
    return Address(place, "watch", "", 0, path) if scheme == "watch" else address_of(place)


def _duration(spec: Spec, option: str, default: str) -> int:
    text = spec.options.get(option, default)
    try:
        duration = parse_duration(text)
    except ValueError as reason:
        message = f"{spec.name}: the option {option} cannot be {text!r}: {reason}"
        raise SourceError(message) from None
    if duration < 0:
        raise SourceError(f"{spec.name}: the option {option} must not be negative")
    return duration


def _bytes(spec: Spec, option: str, default: int) -> int:
    text = spec.options.get(option, str(default))
    if not text.isdecimal() or not int(text):
        raise SourceError(f"{spec.name}: the option {option} is a number of bytes, not {text!r}")
    return int(text)
