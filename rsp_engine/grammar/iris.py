"""IRIs: resolution of relative references (RFC 3986, section 5.2; RFC 3987).

Only references without a scheme are resolved against a base (SPARQL 1.1, section 4.1.1.2). An
absolute IRI is not normalised, neither its dot segments nor its case nor its percent-encoding: RDF
compares IRIs character by character, and data are not normalised either.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from rsp_engine.grammar import tree

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["absolute", "full_iri", "is_absolute", "resolve", "with_absolute_iris"]


_OPAQUE_SCHEMES = (
    "urn",
    "tag",
    "file",
    "data",
    "did",
    "doi",
    "geo",
    "info",
    "mailto",
    "ni",
    "uuid",
)
"""Schemes whose IRIs have no `//`, so that they look like names with a prefix."""
_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL
)


def is_absolute(iri: str) -> bool:
    """Return whether an IRI has a scheme.

    >>> is_absolute("urn:a"), is_absolute("a/b:c")
    (True, False)
    """
    return _split(iri)[0] is not None


def absolute(iri: str) -> str:
    """Return the absolute form of an IRI without BASE: a relative one becomes a `file:` path.

    The result does not depend on the folder of the query.

    >>> absolute("people.ttl"), absolute("../a"), absolute("urn:a")
    ('file:people.ttl', 'file:../a', 'urn:a')
    """
    return iri if is_absolute(iri) else f"file:{iri}"


def full_iri(name: str, prefixes: Mapping[str, str]) -> str | None:
    """Return the IRI of a name as users write it: `<iri>`, `prefix:local`, or an IRI.

    Return None if the name has a prefix that is not known, and no scheme of IRIs.

    >>> known = {"": "http://e/", "ex": "http://ex/"}
    >>> [full_iri(name, known) for name in (":s", "ex:s", "<ex:s>", "http://e/s", "urn:s", "x:s")]
    ['http://e/s', 'http://ex/s', 'ex:s', 'http://e/s', 'urn:s', None]
    """
    if name.startswith("<") and name.endswith(">"):
        return name[1:-1]
    prefix, colon, local = name.partition(":")
    if not colon or local.startswith("//"):
        return name
    if prefix in prefixes:
        return prefixes[prefix] + local
    return name if prefix.lower() in _OPAQUE_SCHEMES or "/" in prefix else None


def resolve(base: str, reference: str) -> str:
    """Resolve a reference against a base IRI.

    >>> resolve("http://a/b/c/d;p?q", "../g?y#s")
    'http://a/b/g?y#s'
    >>> resolve("http://a/", "http://a/b/../c")
    'http://a/b/../c'
    """
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is not None:
        return reference
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        return _join(base_scheme, authority, _without_dots(path), query, fragment)
    if not path:
        return _join(base_scheme, base_authority, base_path, query or base_query, fragment)
    if not path.startswith("/"):
        path = _merge(base_authority, base_path, path)
    return _join(base_scheme, base_authority, _without_dots(path), query, fragment)


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None, "every string has these parts"  # noqa: S101
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment


def _join(
    scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None
) -> str:
    head = "" if scheme is None else f"{scheme}:"
    host = "" if authority is None else f"//{authority}"
    return f"{head}{host}{path}{query or ''}{fragment or ''}"


def _merge(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return f"/{path}"
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Remove dot segments (RFC 3986, section 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment == "..":
            if len(kept) > 1 or (kept and kept[0]):
                kept.pop()
            kept += [""] * last
        elif segment == ".":
            kept += [""] * last
        else:
            kept.append(segment)
    return "/".join(kept)


_BASE = tree.BaseDecl(tree.Iri("file:"))


def with_absolute_iris(query: tree.QueryUnit) -> tree.QueryUnit:
    """Return a query without relative IRIs; calls of IRI() resolve against the same base."""
    resolved = cast("tree.QueryUnit", tree.rewrite_tree(query, _absolute))
    has_base = any(isinstance(declaration, tree.BaseDecl) for declaration in query.prologue)
    calls = {call.name for call in tree.find(query, tree.BuiltInCall)}
    if has_base or not calls & {"IRI", "URI"}:
        return resolved
    return replace(resolved, prologue=(_BASE, *resolved.prologue))


def _absolute(node: tree.Node) -> tree.Node:
    match node:
        case tree.Iri(value):
            return tree.Iri(absolute(value), span=node.span)
        case tree.Literal(_, datatype):
            return replace(node, datatype=absolute(datatype))
        case _:
            return node
