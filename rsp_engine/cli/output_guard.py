"""What a run writes is nothing that it reads: a file is emptied before anything is read of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from rsp_engine.errors import BindingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["places_of", "refuse_overwriting"]


def places_of(source: str) -> list[str]:
    """Return the files that a source may be: its place, and its template.

    >>> places_of("a.csv?template=b.ttl&unit=s"), places_of("file:///tmp/a.nq")
    (['a.csv', 'b.ttl'], ['/tmp/a.nq'])
    """
    from rsp_engine.io.sources.spec import read_spec

    spec = read_spec(source)
    parts = urlsplit(spec.place)
    place = unquote(parts.path) if parts.scheme == "file" else spec.place
    return [place, *(v for key, v in spec.options.items() if key == "template")]


def refuse_overwriting(written: Mapping[str, str | None], read: Iterable[str]) -> None:
    """Refuse a flag that names a file which is read, or which another flag names."""
    taken = {path.resolve() for path in map(Path, read) if path.is_file()}
    for flag, name in written.items():
        if name is None or name == "-" or not _is_plain(Path(name)):
            continue
        path = Path(name).resolve()
        if path in taken:
            message = f"{flag} {name}: this run uses that file, and would overwrite it"
            raise BindingError(message, "name another file")
        taken.add(path)


def _is_plain(path: Path) -> bool:
    """Tell whether a path is of a file, or of nothing yet: /dev/null can be written by all."""
    try:
        return path.is_file() or not path.exists()
    except OSError:
        return False  # opening it will tell what is wrong
