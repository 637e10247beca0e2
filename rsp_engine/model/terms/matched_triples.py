"""The triples that match the patterns of a query, as columns of codes; most are never read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.fingerprints import distinct
from rsp_engine.model.terms.ntriples import read_triples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.model.arrays import Integers

__all__ = ["CodePairs", "MatchedTriples"]


class CodePairs(NamedTuple):
    """The codes of the subjects and of the objects of triples."""

    subjects: Integers
    objects: Integers


class MatchedTriples(Sequence[ox.Triple]):
    """Triples by the pattern that they match, and the fingerprints of all of which they are some.

    The text of code n is `texts[n]`; different codes may have the same text. A triple may repeat,
    and match several patterns. Fingerprints are sorted, and each is there once: they count the
    triples of which only these are needed.

    >>> pairs = CodePairs(np.array([0, 0]), np.array([1, 2]))
    >>> triples = MatchedTriples(("<urn:p>",), (pairs,), ["<urn:a>", '"b"', '"c"'], np.arange(9))
    >>> triples.lines()
    ['<urn:a> <urn:p> "b"', '<urn:a> <urn:p> "c"']
    """

    __slots__ = ("fingerprints", "pairs", "predicates", "texts")

    def __init__(
        self,
        predicates: tuple[str, ...],
        pairs: tuple[CodePairs, ...],
        texts: Sequence[str],
        fingerprints: Integers,
    ) -> None:
        """Take the pairs of each pattern, whose predicates are given as text."""
        self.predicates = predicates
        self.pairs = pairs
        self.texts = texts
        self.fingerprints = fingerprints

    def __len__(self) -> int:
        return sum(len(pairs.subjects) for pairs in self.pairs)

    @overload
    def __getitem__(self, place: int) -> ox.Triple: ...
    @overload
    def __getitem__(self, place: slice) -> list[ox.Triple]: ...
    def __getitem__(self, place: int | slice) -> ox.Triple | list[ox.Triple]:
        """Parse all triples, and return one or a slice."""
        return read_triples("\n".join(self.lines()))[place]

    def __iter__(self) -> Iterator[ox.Triple]:
        """Parse all triples at once."""
        return iter(read_triples("\n".join(self.lines())))

    def lines(self) -> list[str]:
        """Return each triple as its text."""
        texts = self.texts
        return [
            f"{texts[subject]} {predicate} {texts[value]}"
            for predicate, pairs in zip(self.predicates, self.pairs, strict=True)
            for subject, value in zip(pairs.subjects.tolist(), pairs.objects.tolist(), strict=True)
        ]

    def compact(self) -> MatchedTriples:
        """Return the same triples without texts that none of them has."""
        is_used = np.zeros(len(self.texts), dtype=np.bool_)
        for column in self._columns():
            is_used[column] = True
        if is_used.all():
            return self
        numbers = np.cumsum(is_used) - 1
        pairs = tuple(CodePairs(numbers[each[0]], numbers[each[1]]) for each in self.pairs)
        texts = [self.texts[code] for code in np.flatnonzero(is_used).tolist()]
        return MatchedTriples(self.predicates, pairs, texts, self.fingerprints)

    @classmethod
    def joined(cls, parts: Sequence[MatchedTriples]) -> MatchedTriples:
        """Return the triples of several parts, at least one, of the same patterns."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *(len(part.texts) for part in parts)]).tolist()
        of_patterns = zip(*(part.pairs for part in parts), strict=True)
        pairs = [
            CodePairs(
                *(
                    np.concatenate(
                        [each[end] + at for each, at in zip(found, starts, strict=False)]
                    )
                    for end in (0, 1)
                )
            )
            for found in of_patterns
        ]
        texts = [text for part in parts for text in part.texts]
        fingerprints = distinct(np.concatenate([part.fingerprints for part in parts]))
        return cls(parts[0].predicates, tuple(pairs), texts, fingerprints)

    def columns(self) -> tuple[Integers, Integers]:
        """Return how many triples match each pattern, and all codes: subjects, then objects."""
        sizes = np.array([len(pairs.subjects) for pairs in self.pairs], dtype=np.int64)
        subjects, objects = ([each[end] for each in self.pairs] for end in (0, 1))
        return sizes, np.concatenate([*subjects, *objects])

    @classmethod
    def of_columns(
        cls,
        predicates: Sequence[str],
        texts: Sequence[str],
        columns: tuple[Integers, Integers],
        fingerprints: Integers,
    ) -> MatchedTriples:
        """Return triples given by `columns`; raise `ValueError` if these do not fit."""
        sizes, codes = columns
        if len(sizes) != len(predicates) or 2 * sizes.sum() != len(codes) or (sizes < 0).any():
            raise ValueError("a triple has no subject or no object")
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(texts):
            raise ValueError("a code has no term")
        edges = [0, *np.cumsum(sizes).tolist()]
        subjects, objects = np.split(codes, 2)
        pairs = (CodePairs(subjects[a:b], objects[a:b]) for a, b in pairwise(edges))
        return cls(tuple(predicates), tuple(pairs), texts, fingerprints)

    def _columns(self) -> Iterator[Integers]:
        for pairs in self.pairs:
            yield from pairs
