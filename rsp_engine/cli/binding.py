"""Bindings of the form `IRI=VALUE`, by which flags bind streams, graphs and services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.errors import BindingError
from rsp_engine.grammar.iris import full_iri

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["bindings", "bound_once", "modified_by", "value_ranges"]


def bindings(
    texts: Iterable[str], known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> list[tuple[str, str]]:
    """Parse each `IRI=VALUE`; the IRI may be written as in the query.

    An IRI can contain an equals sign, so the names that the queries use are tried first.

    >>> texts = [":s=a.nq", "http://e/?x=1=b.nq"]
    >>> bindings(texts, ["http://e/?x=1"], {"": "http://e/"}, "--stream")
    [('http://e/s', 'a.nq'), ('http://e/?x=1', 'b.nq')]
    """
    return [_binding(text, known, prefixes, flag) for text in texts]


def bound_once(
    texts: Iterable[str], known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> list[tuple[str, str]]:
    """Parse bindings as `bindings` does; refuse an IRI that is bound twice.

    >>> bound_once([":g=a.ttl", ":g=b.ttl"], (), {"": "http://e/"}, "--graph")
    Traceback (most recent call last):
    ...
    rsp_engine.errors.BindingError: --graph binds <http://e/g> twice
      hint: remove one of them
    """
    bound: dict[str, str] = {}
    for iri, value in bindings(texts, known, prefixes, flag):
        if iri in bound:
            raise BindingError(f"{flag} binds <{iri}> twice", "remove one of them")
        bound[iri] = value
    return list(bound.items())


def _binding(
    text: str, known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> tuple[str, str]:
    for iri in known:
        for written in (iri, f"<{iri}>"):
            value = text.removeprefix(f"{written}=")
            if value and value != text:
                return iri, value
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        hint = f"name it as the query does: {flag} :name={value or name or 'VALUE'}"
        if equals and name:
            hint = f"give its value: {flag} {name}=VALUE"
        raise BindingError(f"{flag} {text} is not of the form IRI=VALUE", hint)
    return full_iri(name, prefixes) or name, value


def modified_by(
    texts: Iterable[str],
    bound: Collection[str],
    known: Collection[str],
    prefixes: Mapping[str, str],
) -> dict[str, str]:
    """Return the property that states when a key was last modified, by service.

    >>> modified_by([":s=dct:modified"], {"http://e/s"}, (), {"": "http://e/", "dct": "http://d/"})
    {'http://e/s': 'http://d/modified'}
    """
    properties = {}
    for iri, text in bound_once(texts, known, prefixes, "--modified"):
        if iri not in bound:
            hint = "bind it: --service IRI=URL"
            raise BindingError(f"--modified {iri}: that service is not bound", hint)
        properties[iri] = full_iri(text, prefixes) or text
    return properties


def value_ranges(texts: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Parse the `LOW,HIGH` of each stream.

    >>> value_ranges([("http://e/s", "0,250")])
    {'http://e/s': (0.0, 250.0)}
    """
    return {stream: _range(stream, text) for stream, text in texts}


def _range(stream: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise BindingError(
            f"--range {stream}={text}: this is not a range", "write LOW,HIGH, such as 0,250"
        ) from None
    return low, high
