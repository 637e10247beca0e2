"""A guard of output files: none may be read by the same run, since it is emptied at the start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["files_of", "refuse_overwriting"]


def files_of(source: str) -> list[str]:
    """Return the files that a source may read: its path, and its template.

    >>> files_of("a.csv?template=b.ttl&unit=s"), files_of("file:///tmp/a.nq")
    (['a.csv', 'b.ttl'], ['/tmp/a.nq'])
    """
    from rsp_engine.io.sources.spec import read_spec

    spec = read_spec(source)
    parts = urlsplit(spec.place)
    path = unquote(parts.path) if parts.scheme == "file" else spec.place
    return [path, *(v for key, v in spec.options.items() if key == "template")]


def refuse_overwriting(written: Mapping[str, str | None], read: Iterable[str]) -> None:
    """Refuse an output flag that names a file that is read, or that another flag names."""
    used = {path.resolve() for path in map(Path, read) if path.is_file()}
    for flag, name in written.items():
        if name is None or name == "-" or not _is_plain(Path(name)):
            continue
        path = Path(name).resolve()
        if path in used:
            message = f"{flag} {name}: this run uses that file, and would overwrite it"
            raise BindingError(message, "name another file")
        used.add(path)


def _is_plain(path: Path) -> bool:
    """Return whether a path is a regular file, or free; /dev/null may be written several times."""
    try:
        return path.is_file() or not path.exists()
    except OSError:
        return False  # opening it raises the error
