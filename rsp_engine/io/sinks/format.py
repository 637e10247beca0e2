"""Output formats: what a format declares, and which query forms it supports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from rsp_engine.errors import SinkError
from rsp_engine.model.answers import Answer, Boolean, Graph, Solutions

__all__ = ["AnswerWriter", "ContentForm", "HeadedWriter", "SinkFormat", "misfit"]

ContentForm: TypeAlias = Literal["SELECT", "CONSTRUCT", "ASK"]
"""The query forms that have answers."""

AnswerWriter: TypeAlias = Callable[[Answer], str | bytes]
"""Serializes the answers of one query, in order; empty if there is nothing to write."""


@runtime_checkable
class HeadedWriter(Protocol):
    """A writer that writes a header before the first answer."""

    header: str | None
    """The header, once it was written."""


_ANSWERS: dict[ContentForm, str] = {
    "SELECT": "the rows that a SELECT answers",
    "CONSTRUCT": "the graphs that a CONSTRUCT answers",
    "ASK": "the truth values that an ASK answers",
}
_HINTS: dict[ContentForm, str] = {
    "SELECT": "use jsonl, csv, tsv, sparql-json or sparql-xml",
    "CONSTRUCT": "use nquads or jsonl",
    "ASK": "use sparql-json, sparql-xml, jsonl, csv or tsv",
}
_FORMS: dict[type, ContentForm] = {Solutions: "SELECT", Graph: "CONSTRUCT", Boolean: "ASK"}


@dataclass(frozen=True, slots=True)
class SinkFormat:
    """An output format.

    `writer` creates a writer. `suffix` is the file suffix of the formats that can write each window
    to a file of its own.
    """

    name: str
    help: str
    forms: tuple[ContentForm, ...]
    writer: Callable[[], AnswerWriter]
    iso_writer: Callable[[], AnswerWriter] | None = None
    """Creates a writer of ISO 8601 times instead of milliseconds, if the format has them."""
    suffix: str | None = None
    can_go_back: bool = True
    """Whether a file can be truncated and continued from there, as a checkpoint requires."""

    def check(self, form: ContentForm) -> None:
        """Refuse a query form that the format does not support."""
        if form not in self.forms:
            raise _refusal(self.name, form)


def misfit(name: str, content: Solutions | Graph | Boolean) -> SinkError:
    """Return the error for an answer that a format does not support."""
    return _refusal(name, _FORMS[type(content)])


def _refusal(name: str, form: ContentForm) -> SinkError:
    return SinkError(f"{name} cannot hold {_ANSWERS[form]}", _HINTS[form])
