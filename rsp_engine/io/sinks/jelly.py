"""Jelly output: the graphs of windows as binary frames, one per window, named as in `nquads`.

A frame refers to the lookup tables of earlier frames. A later run can therefore not continue a
truncated file, and the format is refused together with a checkpoint.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from rsp_engine.errors import SinkError
from rsp_engine.io.sinks.format import SinkFormat, misfit
from rsp_engine.io.sinks.nquads import graph_name, scoped
from rsp_engine.model.answers import Graph
from rsp_engine.model.extras import install_command

if TYPE_CHECKING:
    from rsp_engine.io.sinks.format import AnswerWriter
    from rsp_engine.model.answers import Answer

__all__ = ["JELLY"]


class _JellyWriter:
    """Writes each answer as one frame."""

    def __init__(self) -> None:
        # pyjelly is an optional extra.
        from rsp_engine.io.sinks.jelly_frames import Frames

        self._frames = Frames()

    def __call__(self, answer: Answer) -> bytes:
        if not isinstance(answer.content, Graph):
            raise misfit("jelly", answer.content)
        close = answer.window.close
        name = graph_name(answer.query, close)
        return self._frames.frame([(scoped(t, close), name) for t in answer.content.triples])


def _writer() -> AnswerWriter:
    if find_spec("pyjelly") is None:
        hint = f"install it: {install_command('jelly')}"
        raise SinkError("the format jelly needs the extra jelly", hint)
    return _JellyWriter()


JELLY = SinkFormat(
    "jelly",
    "the graphs of a CONSTRUCT in binary frames",
    ("CONSTRUCT",),
    _writer,
    can_go_back=False,
    media_type="application/x-jelly-rdf",
)
