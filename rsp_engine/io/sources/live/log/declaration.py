"""The declaration of a stream: what its log says about the format of its messages.

The messages of most streams have one format. Those that are pushed say themselves which one they
have, in place of a topic; without one, they have that of the stream.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from rsp_engine.errors import SourceError
from rsp_engine.io.atomic_file import write_file
from rsp_engine.io.sources.live.payloads import Payloads
from rsp_engine.io.sources.live.schemes import PUSH, SCHEMES, payloads_of
from rsp_engine.io.sources.spec import Spec, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rsp_engine.io.sources.columns.quad_lines import ReadQuads, Rename
    from rsp_engine.io.sources.live.records import SpoolRecord
    from rsp_engine.io.sources.live.schemes import Scheme
    from rsp_engine.io.sources.live.spooled import MessageFormat
    from rsp_engine.model.streams import DeadLetter, Element

__all__ = ["PUSHED", "PushPayloads", "StreamDeclaration", "StreamKind", "read_declaration"]

StreamKind = Literal["push", "live", "kafka", "file", "query"]
"""Where elements come from. Topics of Kafka and files are their own logs."""

PUSHED = "push"
"""The source of a stream whose elements come by HTTP."""
_FILE, _TEMPLATE = "stream.json", "template.ttl"


@dataclass(frozen=True, slots=True)
class StreamDeclaration:
    """A declared stream."""

    name: str
    iri: str
    source: str = PUSHED
    """`push`, or the address of its messages."""
    options: Mapping[str, str] = field(default_factory=dict)
    template: str | None = None
    keep_bytes: int = 1 << 30
    keep_ms: int = 7 * 24 * 3600 * 1000
    created: int = 0

    @property
    def kind(self) -> StreamKind:
        """Where its elements come from."""
        scheme = self.source.partition("://")[0].lower()
        match scheme:
            case "push" | "query":
                return "push" if scheme == PUSHED else "query"
            case "kafka" | "kafkas":
                return "kafka"
            case _ if scheme in SCHEMES and "://" in self.source:
                return "live"
            case _:
                return "file"

    @property
    def scheme(self) -> Scheme:
        """The protocol of its messages, with the options that it takes."""
        return SCHEMES.get(self.source.partition("://")[0].lower(), PUSH)

    def spec(self, folder: Path) -> Spec:
        """Return the specification of its source; the template is in its folder."""
        template = {} if self.template is None else {"template": str(folder / _TEMPLATE)}
        return Spec(self.name if self.kind == PUSHED else self.source, {**self.options, **template})

    def payloads(self, folder: Path) -> MessageFormat:
        """Return the format of its messages; raise `SourceError` if an option is wrong."""
        spec = self.spec(folder)
        for option in spec.options:
            if option not in self.scheme.options:
                known = self.scheme.options
                hint = nearest(option, known) or f"the options are: {', '.join(known)}"
                raise SourceError(f"{self.name}: there is no option {option}", hint)
        payloads = replace(payloads_of(spec, self.scheme), source=self.name)
        return PushPayloads(payloads) if self.kind == PUSHED else payloads

    def write(self, folder: Path) -> None:
        """Write the declaration to the folder of the stream."""
        if self.template is not None:
            write_file(folder / _TEMPLATE, [self.template.encode()])
        data = {**asdict(self), "options": dict(self.options)}
        write_file(folder / _FILE, [json.dumps(data, indent=1).encode()])


def read_declaration(folder: Path) -> StreamDeclaration:
    """Read the declaration of a stream."""
    path = folder / _FILE
    try:
        return StreamDeclaration(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        hint = "name the folder of a stream, which has this file"
        raise SourceError(f"{path}: there is no such file", hint) from None
    except (ValueError, TypeError) as error:
        raise SourceError(f"{path} is damaged: {error}", "restore it from a copy") from None


@dataclass(frozen=True, slots=True)
class PushPayloads:
    """The formats of pushed messages, by the topic of each."""

    usual: Payloads

    @property
    def source(self) -> str:
        """The name of the stream."""
        return self.usual.source

    def elements(self, record: SpoolRecord) -> Iterable[Element | DeadLetter]:
        """Yield the elements and dead letters of a message."""
        topic = record.message.topic
        payloads = self.usual if not topic else _in_format(self.source, topic, self.usual.ahead)
        return payloads.elements(record)

    def read_columns(self, records: Sequence[SpoolRecord], rename: Rename) -> ReadQuads | None:
        """Read messages of the usual format as columns; None if they must be read as elements."""
        if any(record.message.topic for record in records):
            return None
        return self.usual.read_columns(records, rename)


@lru_cache(maxsize=256)
def _in_format(source: str, name: str, ahead: int) -> Payloads:
    return Payloads(source, name, ahead=ahead)
