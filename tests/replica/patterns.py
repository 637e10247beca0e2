"""Patterns and keys that the tests of endpoints share."""

from __future__ import annotations

from pyoxigraph import Literal, NamedNode

from rsp_engine.replica.pattern import Key, RemotePattern

__all__ = ["FOLLOWERS", "SERVICE", "count", "user", "users"]

SERVICE = "http://example.org/service"
FOLLOWERS = RemotePattern(
    SERVICE, "{ ?user <http://example.org/followers> ?count }", ("user",), ("count",)
)


def user(number: int) -> Key:
    return (NamedNode(f"http://example.org/user/{number:05}"),)


def users(size: int) -> list[Key]:
    return [user(number) for number in range(size)]


def count(number: int) -> dict[str, Literal]:
    return {"count": Literal(number)}


def insert(size: int, graph: str | None = None) -> str:
    """Return an update that gives each user as many followers as its number."""
    triples = "\n".join(
        f"{user(number)[0]} <http://example.org/followers> {number} ." for number in range(size)
    )
    return (
        f"INSERT DATA {{ {triples} }}"
        if graph is None
        else (f"INSERT DATA {{ GRAPH <{graph}> {{ {triples} }} }}")
    )
