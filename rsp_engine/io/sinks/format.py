"""What a format is, and which forms of query it has room for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rsp_engine.errors import SinkError
from rsp_engine.model.answers import Answer, Boolean, Graph, Solutions

__all__ = ["AnswerWriter", "ContentForm", "SinkFormat", "misfit"]

ContentForm: TypeAlias = Literal["SELECT", "CONSTRUCT", "ASK"]
"""The forms of query that have answers."""

AnswerWriter: TypeAlias = Callable[[Answer], str | bytes]
"""It makes text of the answers of one query, one after the other; empty where there is none."""

_ANSWERS: dict[ContentForm, str] = {
    "SELECT": "the rows that a SELECT answers",
    "CONSTRUCT": "the graphs that a CONSTRUCT answers",
    "ASK": "the truth values that an ASK answers",
}
_HINTS: dict[ContentForm, str] = {
    "SELECT": "take jsonl, csv, tsv, sparql-json or sparql-xml",
    "CONSTRUCT": "take nquads or jsonl",
    "ASK": "take sparql-json, sparql-xml, jsonl, csv or tsv",
}
_FORMS: dict[type, ContentForm] = {Solutions: "SELECT", Graph: "CONSTRUCT", Boolean: "ASK"}


@dataclass(frozen=True, slots=True)
class SinkFormat:
    """A way to write answers.

    `writer` makes a new writer. `suffix` ends the names of the files of a folder, for the formats
    that can put each window into a file of its own.
    """

    name: str
    help: str
    forms: tuple[ContentForm, ...]
    writer: Callable[[], AnswerWriter]
    suffix: str | None = None
    can_go_back: bool = True
    """Whether what was written can be cut off, and written on from there."""

    def check(self, form: ContentForm) -> None:
        """Refuse a form of query whose answers the format cannot hold."""
        if form not in self.forms:
            raise _refusal(self.name, form)


def misfit(name: str, content: Solutions | Graph | Boolean) -> SinkError:
    """Return the refusal of an answer that a format cannot hold."""
    return _refusal(name, _FORMS[type(content)])


def _refusal(name: str, form: ContentForm) -> SinkError:
    return SinkError(f"{name} cannot hold {_ANSWERS[form]}", _HINTS[form])
