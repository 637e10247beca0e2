"""Query files: UTF-8 text with a limit on the size."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from pathlib import Path

from rsp_engine.errors import Diagnostic, QueryFileError, QuerySyntaxError, Span

__all__ = ["LARGEST_QUERY", "read_query"]

LARGEST_QUERY = 2 * 1024 * 1024
"""The largest query file, in bytes: far more than a query needs, so a larger file is data."""


def read_query(path: str) -> str:
    """Return the text of a query file, or of standard input for `-`.

    Raise `QueryFileError` if the file cannot be read or is too large, and `QuerySyntaxError` if it
    is not UTF-8.
    """
    data = _read(path)
    if len(data) > LARGEST_QUERY:
        size = f"{LARGEST_QUERY // 1024 // 1024} MB"
        raise QueryFileError(
            f"it is larger than {size}", "a query this long is probably data", path
        )
    data = data.removeprefix(BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        place = len(data[: error.start].decode())
        message = f"the text is not UTF-8: byte 0x{data[error.start]:02x} is not valid here"
        hint = "save the file as UTF-8"
        wrong = Diagnostic("syntax", message, Span(place, place + 1), hint)
        raise QuerySyntaxError([wrong], text, path) from None


def _read(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read(LARGEST_QUERY + 1)
    file = Path(path)
    try:
        with file.open("rb") as stream:
            return stream.read(LARGEST_QUERY + 1)
    except FileNotFoundError:
        raise QueryFileError("there is no such file", "check the path", path) from None
    except IsADirectoryError:
        hint = f"name the files in it: {file / '*.rspql'}"
        raise QueryFileError("it is a folder, not a query", hint, path) from None
    except OSError as error:
        raise QueryFileError(f"it cannot be read: {error.strerror or error}", path=path) from None
