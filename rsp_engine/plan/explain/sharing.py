"""The explanation of what a query shares with the others where streams are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["SharedMatching", "matching_as_data", "matching_as_text"]


class SharedMatching(NamedTuple):
    """The queries that share the matching of a stream with a query, and those with equal panes."""

    stream: str
    queries: tuple[str, ...]
    panes: tuple[str, ...]


def matching_as_text(shared: Iterable[SharedMatching]) -> Iterator[str]:
    """Yield what a query shares, a line each.

    >>> for line in matching_as_text([SharedMatching("urn:s", ("urn:a", "urn:b"), ("urn:b",))]):
    ...     print(line)
    shares   the matching of stream <urn:s> with urn:a, urn:b
             the panes of stream <urn:s> with urn:b
    """
    for stream, queries, panes in shared:
        what = {"the matching": queries, "the panes": panes}
        lines = [f"{w} of stream <{stream}> with {', '.join(n)}" for w, n in what.items() if n]
        yield from (f"{'' if number else 'shares':8} {line}" for number, line in enumerate(lines))


def matching_as_data(shared: Iterable[SharedMatching]) -> list[dict[str, Any]]:
    """Return what a query shares, as JSON data."""
    return [
        {"stream": stream, "matching": list(queries), "panes": list(panes)}
        for stream, queries, panes in shared
    ]
