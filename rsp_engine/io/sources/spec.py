"""Source specifications: a place, and options after a question mark.

    events.nq    readings?unit=s    -?format=jsonl    https://example.org/feed.nq.gz?time=prov

Options are `key=value` pairs joined by `&`; characters can be percent-encoded (`delimiter=%09`).
A question mark in the name of an existing file is part of the name. In a URL, the options follow
the last question mark; end a URL that has a query of its own with a question mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from rsp_engine.errors import SourceError
from rsp_engine.model.extras import install_command
from rsp_engine.model.quantities import parse_duration
from rsp_engine.monitor.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["STANDARD_INPUT", "Spec", "is_url", "nearest", "need", "read_spec"]

STANDARD_INPUT = "-"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # a single letter is a drive


@dataclass(frozen=True, slots=True)
class Spec:
    """A place (a path, `-` or a URL) and its options."""

    place: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The place as messages and logs show it, without the secrets of a URL."""
        return without_secrets(self.place)

    def choice(self, key: str, known: tuple[str, ...]) -> str:
        """Return the value of an option, which must be in `known`; the first is the default."""
        value = self.options.get(key, known[0])
        if value not in known:
            raise SourceError(
                f"{self.name}: the option {key} cannot be {value!r}",
                nearest(value, known) or f"it is one of: {', '.join(known)}",
            )
        return value

    def duration(self, key: str, default: str) -> int:
        """Return the value of an option that is a duration, in milliseconds."""
        text = self.options.get(key, default)
        try:
            duration = parse_duration(text)
        except ValueError as reason:
            message = f"{self.name}: the option {key} cannot be {text!r}: {reason}"
            raise SourceError(message) from None
        if duration < 0:
            raise SourceError(f"{self.name}: the option {key} must not be negative")
        return duration

    def bytes(self, key: str, default: int) -> int:
        """Return the value of an option that is a number of bytes."""
        text = self.options.get(key, str(default))
        if not text.isdecimal() or not int(text):
            message = f"{self.name}: the option {key} is a number of bytes, not {text!r}"
            raise SourceError(message)
        return int(text)


def read_spec(text: str) -> Spec:
    """Split a source specification into its place and its options.

    >>> read_spec("-?format=csv&delimiter=%3B")
    Spec(place='-', options={'format': 'csv', 'delimiter': ';'})
    >>> read_spec("https://example.org/feed?room=7?format=jsonl").place
    'https://example.org/feed?room=7'
    """
    if not text:
        raise SourceError("no source is named", "name a file, a folder, a URL, or - for the input")
    place, _, options = _split(text)
    return Spec(place, _read_options(without_secrets(place), options))


def is_url(place: str) -> bool:
    """Return whether a place is a URL: it starts with a scheme, and is not an existing file.

    >>> is_url("https://example.org/"), is_url("events.nq"), is_url("C:events.nq")
    (True, False, False)
    """
    return _SCHEME.match(place) is not None and not _exists(place)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return a hint with the known word that is closest to an unknown one; `None` if none is.

    >>> nearest("fromat", ["format", "time"])
    'did you mean format?'
    """
    close = get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]}?" if close else None


def need(place: str, extra: str, module: str) -> None:
    """Raise `SourceError` if the module of an optional extra is not installed."""
    if find_spec(module) is None:
        hint = f"install it: {install_command(extra)}"
        raise SourceError(f"{place}: this needs the extra {extra}", hint)


def _split(text: str) -> tuple[str, str, str]:
    if _exists(text):
        return text, "", ""
    if is_url(text):
        return text.rpartition("?") if "?" in text else (text, "", "")
    marks = [mark.start() for mark in re.finditer(r"\?", text)]
    for mark in reversed(marks):
        if text[:mark] == STANDARD_INPUT or _exists(text[:mark]):
            return text[:mark], "?", text[mark + 1 :]
    return text.partition("?")


def _read_options(place: str, text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for pair in filter(None, text.split("&")):
        key, equals, value = (unquote(part) for part in pair.partition("="))
        if not equals:
            raise SourceError(f"{place}: the option {key} has no value", f"write {key}=...")
        if key in options:
            raise SourceError(f"{place}: the option {key} is given twice", "give it once")
        options[key] = value
    return options


def _exists(place: str) -> bool:
    try:
        return Path(place).exists()
    except (OSError, ValueError):  # not a valid file name: too long, or it contains a NUL
        return False
