"""Unseen predicates: those that a query matches in a window, and that its stream never had.

A run collects nothing of files and folders: their beginning is read again when it is asked for. Of
a source that can be read only once, the run samples the first triples or messages.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.errors import SourceError
from rsp_engine.grammar import tree
from rsp_engine.grammar.iris import absolute
from rsp_engine.grammar.triples import plain_triples
from rsp_engine.io.sources.batch import InBatches
from rsp_engine.io.sources.extent import is_sized
from rsp_engine.io.sources.live.source import LiveSource
from rsp_engine.io.sources.predicate_sample import PredicateSample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.io.sources import ElementSource

__all__ = ["UnseenPredicates", "unseen_predicates", "window_predicates"]


class UnseenPredicates(NamedTuple):
    """The predicates of a query that were not seen in a stream, and those that were."""

    stream: str
    unseen: list[str]
    seen: set[str]
    is_whole: bool
    """Whether all elements of the stream were looked at, not only the first ones."""


def unseen_predicates(
    query: tree.QueryUnit,
    sources: Mapping[str, Sequence[tuple[ElementSource, PredicateSample | None]]],
) -> list[UnseenPredicates]:
    """Return the unseen predicates of a query, by stream, after a run.

    `sources` has the sources of each stream, each with the sample that the run took of it, if any.
    """
    found = []
    for stream, wanted in window_predicates(query).items():
        samples = [_sample(*bound, wanted) for bound in sources.get(stream, ())]
        seen = {predicate for sample in samples for predicate in sample.predicates}
        unseen = [predicate for predicate in wanted if predicate not in seen]
        if unseen and seen:
            is_whole = all(sample.is_whole for sample in samples)
            found.append(UnseenPredicates(stream, unseen, seen, is_whole))
    return found


def window_predicates(query: tree.QueryUnit) -> dict[str, list[str]]:
    """Return the predicates that a query matches in the windows of each stream, in text order.

    >>> from rsp_engine.grammar import parse
    >>> window_predicates(parse('''PREFIX : <urn:x:>
    ...     SELECT * FROM NAMED WINDOW :w ON :s [RANGE 1s] WHERE { WINDOW :w { ?a :p/^:q ?b } }'''))
    {'urn:x:s': ['urn:x:p', 'urn:x:q']}
    """
    wanted: dict[str, dict[str, None]] = {}
    for block in tree.find(query, tree.WindowPattern):
        for window in query.windows:
            if isinstance(block.name, tree.Var) or block.name == window.window:
                named = wanted.setdefault(absolute(window.stream.value), {})
                named |= dict.fromkeys(_predicates(block))
    return {stream: list(named) for stream, named in wanted.items()}


def _predicates(block: tree.WindowPattern) -> Iterator[str]:
    for triples in tree.find(block, tree.TriplesBlock):
        for _, verb, _ in plain_triples(triples):
            excluded = {name for each in tree.find(verb, tree.PathNegated) for name in _iris(each)}
            yield from (iri.value for iri in _iris(verb) if iri not in excluded)


def _iris(node: tree.Node) -> Iterator[tree.Iri]:
    return tree.find(node, tree.Iri)


def _sample(
    source: ElementSource, sampled: PredicateSample | None, wanted: Sequence[str]
) -> PredicateSample:
    """Return the sample that the run took, or read the beginning of the source again."""
    if sampled is not None:
        return sampled
    if isinstance(source, LiveSource):
        return source.predicates()
    sample = PredicateSample()
    items = source.batches() if isinstance(source, InBatches) else source
    with suppress(SourceError):  # the file is gone: what was seen is seen
        for _ in sample.take(items) if is_sized(source) else ():
            if not sample.is_whole or sample.predicates.issuperset(wanted):
                break
    return sample
