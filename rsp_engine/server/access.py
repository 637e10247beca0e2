"""What requests may open: servers and folders that the configuration names, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rsp_engine.errors import BindingError, RspError
from rsp_engine.http_client.access import origin_of
from rsp_engine.io.sources.live.address import ports_of_sources
from rsp_engine.server.refusals import ForbiddenError, MalformedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rsp_engine.server.groups.bindings import Bindings
    from rsp_engine.server.options import ServeOptions

__all__ = ["Access"]


class Access:
    """The servers and the folders that requests may name."""

    def __init__(self, options: ServeOptions) -> None:
        """Take what the options allow; raise `BindingError` if it is not well formed."""
        ports = ports_of_sources()
        try:
            self._origins = {origin_of(url, ports) for url in options.allow}
        except RspError as error:
            raise BindingError(f"--allow: {error.message}", error.hint) from None
        self._folders = [_folder(text) for text in options.files]

    def check_url(self, url: str) -> None:
        """Refuse a URL whose server is not allowed."""
        try:
            origin = origin_of(url, ports_of_sources())
        except RspError as error:
            raise MalformedError(error.message, error.hint) from None
        if origin not in self._origins:
            hint = f"if you trust it, start the server with --allow {origin}"
            raise ForbiddenError(f"the server {origin} is not allowed", hint)

    def check_source(self, source: str) -> str:
        """Return the source of a stream; refuse one that is not allowed.

        A file is returned as a path that no link leads out of the allowed folders.
        """
        scheme = urlsplit(source).scheme
        if scheme in ports_of_sources():
            self.check_url(source)
            return source
        if "://" in source:
            hint = "a stream is pushed, or read from a broker, a server or a file"
            raise ForbiddenError(f"streams cannot be read from {scheme}://", hint)
        return str(self.file(source))

    def check_bindings(self, bindings: Bindings) -> None:
        """Refuse bindings that name a server or a file that is not allowed any more."""
        for url in bindings.services.values():
            self.check_url(url)
        for path in bindings.graphs.values():
            self.file(path)

    def file(self, text: str) -> Path:
        """Return the path of an allowed file; refuse any other."""
        hint = "start the server with --files FOLDER to let requests name its files"
        try:
            path = Path(text).resolve()
            is_allowed = any(path.is_relative_to(folder) for folder in self._folders)
            is_there = is_allowed and path.exists()
        except (OSError, ValueError, RuntimeError):
            raise MalformedError(f"{text[:200]!r} is no path") from None
        if not is_allowed:
            raise ForbiddenError("the file is not in a folder that is allowed", hint)
        if not is_there:
            raise MalformedError(f"{text}: there is no such file", "check the path")
        return path

    @property
    def folders(self) -> Sequence[Path]:
        """The folders whose files requests may name."""
        return self._folders


def _folder(text: str) -> Path:
    path = Path(text).resolve()
    if not path.is_dir():
        raise BindingError(f"--files {text}: there is no such folder", "check the path")
    return path
