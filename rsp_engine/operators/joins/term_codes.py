"""Terms as integers: a dictionary that grows with the terms of a window."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.model.arrays import Integers

__all__ = ["TermCodes"]


class TermCodes:
    """The code of each term, which is given as its text. Memory: all terms ever encoded.

    >>> codes = TermCodes()
    >>> codes.encode(["<urn:a>", '"b"', "<urn:a>"]), codes.texts()
    (array([0, 1, 0]), ['<urn:a>', '"b"'])
    """

    def __init__(self) -> None:
        self._codes: defaultdict[str, int] = defaultdict()
        self._codes.default_factory = self._codes.__len__
        self._texts: list[str] = []
        self.has_blank_nodes = False
        """Whether a term so far was a blank node, or has a text that looks like one."""

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, texts: Sequence[str]) -> Integers:
        """Return the codes of terms; a new term gets the next code."""
        self.has_blank_nodes = self.has_blank_nodes or "_:" in "\n".join(texts)
        return np.fromiter(map(self._codes.__getitem__, texts), dtype=np.int64, count=len(texts))

    def code(self, text: str) -> int:
        """Return the code of a term."""
        return self._codes[text]

    def texts(self) -> list[str]:
        """Return the text of each code."""
        new = len(self._codes) - len(self._texts)
        if new:
            latest = list(islice(reversed(self._codes), new))
            self._texts += reversed(latest)
        return self._texts
