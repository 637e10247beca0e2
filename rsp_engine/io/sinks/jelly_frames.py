"""The Jelly encoder: quads of pyoxigraph as a delimited stream of datasets.

This is the only output module that imports the optional package pyjelly; `jelly` declares the
format without it.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
from pyjelly import jelly
from pyjelly.options import StreamParameters
from pyjelly.serialize.encode import TermEncoder
from pyjelly.serialize.ioutils import write_delimited
from pyjelly.serialize.streams import QuadStream, SerializerOptions

from rsp_engine.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Frames"]


class Frames:
    """A Jelly stream that is written frame by frame."""

    def __init__(self) -> None:
        options = SerializerOptions(
            logical_type=jelly.LOGICAL_STREAM_TYPE_DATASETS,
            params=StreamParameters(rdf_star=True, stream_name="rsp-engine"),
        )
        encoder = _OxigraphEncoder(lookup_preset=options.lookup_preset)
        self._stream = QuadStream(encoder=encoder, options=options)

    def frame(
        self, quads: Iterable[tuple[ox.Triple, ox.NamedNode | ox.BlankNode | ox.DefaultGraph]]
    ) -> bytes:
        """Return a frame with the quads; the first frame also declares the stream options."""
        self._stream.enroll()
        for triple, graph in quads:
            self._stream.quad((triple.subject, triple.predicate, triple.object, graph))
        frame, written = self._stream.flow.frame_from_dataset(), BytesIO()
        if frame is not None:
            write_delimited(frame, written)
        return written.getvalue()


class _OxigraphEncoder(TermEncoder):  # type: ignore[misc]
    """Encodes terms of pyoxigraph."""

    def encode_spo(self, term: object, slot: Any, statement: Any) -> Any:  # noqa: ANN401 - untyped
        match term:
            case ox.NamedNode():
                return self.encode_iri(term.value, self.get_iri_field(statement, slot))
            case ox.BlankNode():
                self.set_bnode_field(statement, slot, term.value)
                return ()
            case ox.Literal():
                if term.direction is not None:
                    raise SinkError("jelly cannot represent the direction of a text", "use nquads")
                return self.encode_literal(
                    lex=term.value,
                    language=term.language,
                    datatype=None if term.language else term.datatype.value,
                    literal=self.get_literal_field(statement, slot),
                )
            case ox.Triple():
                parts = (term.subject, term.predicate, term.object)
                return self.encode_quoted_triple(parts, self.get_triple_field(statement, slot))
            case _:
                return super().encode_spo(term, slot, statement)

    def encode_graph(self, term: object, statement: Any) -> Any:  # noqa: ANN401 - untyped
        match term:
            case ox.NamedNode():
                return self.encode_iri(term.value, statement.g_iri)
            case ox.BlankNode():
                statement.g_bnode = term.value
                return ()
            case ox.DefaultGraph():
                return self.encode_default_graph(statement.g_default_graph)
            case _:
                return super().encode_graph(term, statement)
