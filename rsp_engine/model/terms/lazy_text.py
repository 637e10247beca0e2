"""Rows and triples that stay text until they are read: most never are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import pyoxigraph as ox

from rsp_engine.model.terms.matched_triples import MatchedTriples
from rsp_engine.model.terms.ntriples import read_rows, read_triples

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["WrittenRows", "WrittenTriples", "triple_lines"]

Row = tuple[Any, ...]  # terms; `None` where a variable is unbound


class WrittenRows(Sequence[Row]):
    r"""Rows of `width` terms, each kept as a line of text.

    >>> rows = WrittenRows(2, ['<urn:a>\t"b"', '<urn:c>\t'])
    >>> rows[1], len(rows), rows.column(0)
    ((<NamedNode value=urn:c>, None), 2, ['<urn:a>', '<urn:c>'])
    """

    __slots__ = ("texts", "width")

    def __init__(self, width: int, texts: Sequence[str]) -> None:
        self.width = width
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        """Parse one row, or the rows of a slice."""
        if isinstance(place, slice):
            return [*read_rows(self.texts[place], self.width)]
        return read_rows([self.texts[place]], self.width)[0]

    def __iter__(self) -> Iterator[Row]:
        """Parse all rows at once."""
        return iter(read_rows(self.texts, self.width))

    def at(self, places: Iterable[int]) -> WrittenRows:
        """Return the rows at these places, still as text."""
        texts = self.texts
        return WrittenRows(self.width, [texts[place] for place in places])

    def column(self, *places: int) -> list[str]:
        """Return the text of one term per row; join several terms with tabs."""
        if places == (0,):
            return [text.partition("\t")[0] for text in self.texts]
        rows = (text.split("\t") for text in self.texts)
        return ["\t".join([row[place] for place in places]) for row in rows]


class WrittenTriples(Sequence[ox.Triple]):
    """Triples kept as text, one per line: the text that `str` gives of a triple.

    So equal triples have equal lines.

    >>> triples = WrittenTriples('<urn:a> <urn:b> "c"')
    >>> triples.add('<urn:d> <urn:e> "f"')
    >>> len(triples), [str(triple.object) for triple in triples]
    (2, ['"c"', '"f"'])
    """

    __slots__ = ("text",)

    def __init__(self, text: str = "") -> None:
        self.text = text

    def add(self, text: str) -> None:
        """Append triples, one per line."""
        self.text = f"{self.text}\n{text}" if self.text and text else self.text or text

    def __len__(self) -> int:
        return self.text.count("\n") + 1 if self.text else 0

    @overload
    def __getitem__(self, place: int) -> ox.Triple: ...
    @overload
    def __getitem__(self, place: slice) -> list[ox.Triple]: ...
    def __getitem__(self, place: int | slice) -> ox.Triple | list[ox.Triple]:
        """Parse all triples, and return one or a slice."""
        return read_triples(self.text)[place]

    def __iter__(self) -> Iterator[ox.Triple]:
        """Parse all triples at once."""
        return iter(read_triples(self.text))


def triple_lines(triples: Sequence[ox.Triple]) -> list[str]:
    """Return each triple as its text; those that are kept otherwise are not parsed.

    >>> triple_lines(WrittenTriples('<urn:a> <urn:b> "c"'))
    ['<urn:a> <urn:b> "c"']
    """
    if isinstance(triples, MatchedTriples):
        return triples.lines()
    if isinstance(triples, WrittenTriples):
        return triples.text.split("\n") if triples.text else []
    return list(map(str, triples))
