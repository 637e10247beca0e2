"""Bindings of the form `IRI=VALUE`, by which flags bind streams, graphs and services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["bindings", "bound_once"]


def bindings(
    texts: list[str], known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> list[tuple[str, str]]:
    """Parse each `IRI=VALUE`; the IRI may be written as in the query.

    An IRI can contain an equals sign, so the names that the queries use are tried first.

    >>> texts = [":s=a.nq", "http://e/?x=1=b.nq"]
    >>> bindings(texts, ["http://e/?x=1"], {"": "http://e/"}, "--stream")
    [('http://e/s', 'a.nq'), ('http://e/?x=1', 'b.nq')]
    """
    return [_binding(text, known, prefixes, flag) for text in texts]


def bound_once(
    texts: list[str], known: Collection[str], prefixes: Mapping[str, str], flag: str
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
    prefix, colon, local = name.partition(":")
    if colon and prefix in prefixes and not local.startswith("//"):
        return prefixes[prefix] + local, value
    return name.removeprefix("<").removesuffix(">"), value
