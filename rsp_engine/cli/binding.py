"""`IRI=VALUE`, as users bind streams and graphs on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["bindings", "bound_once"]


def bindings(
    given: list[str], known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> list[tuple[str, str]]:
    """Split each `IRI=VALUE`; the IRI may be written as in the query.

    An IRI can hold an equals sign, so the names that the queries know are tried first.

    >>> given = [":s=a.nq", "http://e/?x=1=b.nq"]
    >>> bindings(given, ["http://e/?x=1"], {"": "http://e/"}, "--stream")
    [('http://e/s', 'a.nq'), ('http://e/?x=1', 'b.nq')]
    """
    return [_binding(text, known, prefixes, flag) for text in given]


def bound_once(
    given: list[str], known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> list[tuple[str, str]]:
    """Do the same where an IRI has one value.

    >>> bound_once([":g=a.ttl", ":g=b.ttl"], (), {"": "http://e/"}, "--graph")
    Traceback (most recent call last):
    ...
    rsp_engine.errors.BindingError: --graph binds <http://e/g> twice
      hint: leave one of them out
    """
    found: dict[str, str] = {}
    for iri, value in bindings(given, known, prefixes, flag):
        if iri in found:
            raise BindingError(f"{flag} binds <{iri}> twice", "leave one of them out")
        found[iri] = value
    return list(found.items())


def _binding(
    text: str, known: Collection[str], prefixes: Mapping[str, str], flag: str
) -> tuple[str, str]:
    for iri in known:
        for written in (iri, f"<{iri}>"):
            bound = text.removeprefix(f"{written}=")
            if bound and bound != text:
                return iri, bound
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        hint = f"name it as the query does: {flag} :name={value or name or 'VALUE'}"
        if equals and name:
            hint = f"say what it is: {flag} {name}=VALUE"
        raise BindingError(f"{flag} {text} is not of the form IRI=VALUE", hint)
    prefix, colon, local = name.partition(":")
    if colon and prefix in prefixes and not local.startswith("//"):
        return prefixes[prefix] + local, value
    return name.removeprefix("<").removesuffix(">"), value
