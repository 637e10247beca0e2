"""The LALR tables of `rspql.lark`, built once per version and kept in the user's cache folder.

The file name contains a hash of the grammar and the versions of Lark and Python, so a stale file is
never read. Without a usable folder the tables are built in memory.

The tables are a pickle, and a pickle can run any code: they are read only from a file and a folder
that belong to the user and that no one else can write to.

For a text of ASCII there are tables of their own, whose names have only characters of ASCII: to
compile the classes of all other characters takes longer than to parse most queries.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import tempfile
from functools import cache
from pathlib import Path
from pkgutil import get_data

import lark

from rsp_engine.cache_folder import cache_folder, is_mine

__all__ = ["tables"]


_BEYOND_ASCII = re.compile(r"\\u[0-9A-F]{4}|\\U[0-9A-F]{8}")
"""A character that is not of ASCII, in the classes of the grammar."""


@cache
def tables(*, is_ascii: bool = False) -> lark.Lark:
    """Return Lark's parser of the grammar, from the cache if possible.

    With `is_ascii`, it parses texts of ASCII only, and to the same trees.
    """
    grammar = (get_data("rsp_engine.grammar", "rspql.lark") or b"").decode()
    if is_ascii:
        # The letter is in these classes anyway. Lark sorts terminals by the length of their text.
        grammar = _BEYOND_ASCII.sub("A", grammar)
    folder = cache_folder()
    if folder is None:
        return _make(grammar)
    version = f"{grammar}\0{lark.__version__}\0{sys.version_info[:2]}"
    path = folder / f"rspql-{hashlib.sha256(version.encode()).hexdigest()[:16]}.tables"
    # A file that is absent or damaged in any way is built again.
    with contextlib.suppress(Exception):
        return _load(path)
    parser = _make(grammar)
    with contextlib.suppress(OSError):
        _save(parser, path)
    return parser


def _make(grammar: str) -> lark.Lark:
    return lark.Lark(
        grammar,
        start="unit",
        parser="lalr",
        lexer="basic",
        propagate_positions=True,
        maybe_placeholders=True,
    )


def _load(path: Path) -> lark.Lark:
    with path.open("rb") as file:
        if not is_mine(os.fstat(file.fileno())):
            raise PermissionError(path)
        return lark.Lark.load(file)


def _save(parser: lark.Lark, path: Path) -> None:
    """Write a temporary file and rename it, so that other processes see the whole file or none."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        parser.save(file)
    Path(file.name).replace(path)
