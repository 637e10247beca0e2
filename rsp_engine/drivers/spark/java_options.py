"""Options of Spark's Java process that let it start quickly, and the archive of its classes.

Most of a start goes into loading and compiling thousands of classes. Java can archive the loaded
classes when it ends, and map the archive into memory at the next start (class data sharing). The
first run makes the archive, in the cache folder of the user. Its name has a hash of what it depends
on: the version of Java, and the class path of Spark. Java checks the archive itself, and starts
without one that is damaged or does not fit.

The first compiler of Java is enough for a process that only moves data between Python processes,
and so is its simplest garbage collector. Who sets options of Java gets only these.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from rsp_engine.cache_folder import cache_folder, is_mine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["ClassArchive", "class_archive", "java_environment"]

_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Java would print its warnings to standard output, among the answers.
_CHECKED = "-Xshare:auto -XX:+VerifySharedSpaces -Xlog:disable -Xlog:all=warning:stderr"
_ARCHIVING = 13
"""The first version of Java that archives the classes of an application."""
_LEFT_S = 3600
"""The age of a draft that no program writes any more, in seconds."""
_SET_BY_USERS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_OWN_OPTIONS = re.compile(r"(?:extra|default)JavaOptions|--driver-java-options")


class ClassArchive(NamedTuple):
    """The archive with the key of a version of Java and of Spark; it may have to be made.

    The name of its file has its size, since Java crashes if the end of the file is missing.
    """

    folder: Path
    key: str

    @property
    def file(self) -> Path | None:
        """The file, if it is whole and belongs to the user."""
        with contextlib.suppress(OSError):
            for path in self._files():
                status = path.stat()
                if is_mine(status) and path.stem.endswith(f"-{status.st_size}"):
                    return path
        return None

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"spark-{self.key}-*.jsa"))

    @property
    def draft(self) -> Path:
        """The file that Java writes when it ends, and that becomes the archive when it is whole."""
        return self.folder / f"spark-{self.key}.{os.getpid()}"

    def keep_draft(self) -> None:
        """Make the draft the archive; remove damaged ones, and drafts that killed programs left."""
        with contextlib.suppress(OSError):
            for damaged in self._files():
                damaged.unlink()
            for other in self.folder.glob("spark-*.[0-9]*"):
                if other.stat().st_mtime < time.time() - _LEFT_S:
                    other.unlink()
            size = self.draft.stat().st_size
            self.draft.replace(self.folder / f"spark-{self.key}-{size}.jsa")

    def drop_draft(self) -> None:
        """Remove the draft, if there is one."""
        with contextlib.suppress(OSError):
            self.draft.unlink()


def class_archive(java: str, home: Path) -> ClassArchive | None:
    """Return the archive for a version of Java, as it describes itself, and the home of Spark.

    Return None if Java cannot make one, or there is no folder for it.
    """
    found = re.search(r'version "([0-9]+)', java)
    folder = cache_folder()
    if found is None or int(found[1]) < _ARCHIVING or folder is None:
        return None
    try:
        jars = [(jar.name, jar.stat()) for jar in sorted((home / "jars").iterdir())]
    except OSError:
        return None
    # Java refuses an archive if a file of the class path has another size or time.
    on_path = [(name, status.st_size, status.st_mtime_ns) for name, status in jars]
    depends = "\0".join([java, str(home), repr(on_path), _QUICK])
    return ClassArchive(folder, hashlib.sha256(depends.encode()).hexdigest()[:16])


def java_environment(
    archive: ClassArchive | None, environment: Mapping[str, str], defaults: str = ""
) -> dict[str, str]:
    """Return the variables that set the options of Java; none if the user sets options.

    `defaults` are the settings of Spark's own file.

    >>> java_environment(None, {"JAVA_TOOL_OPTIONS": "-XX:+UseG1GC"})
    {}
    """
    arguments = environment.get("PYSPARK_SUBMIT_ARGS", "") + defaults
    if any(environment.get(name) for name in _SET_BY_USERS) or _OWN_OPTIONS.search(arguments):
        return {}
    options = [_QUICK]
    if archive is not None and (file := archive.file) is not None:
        options += [f"-XX:SharedArchiveFile={file}", _CHECKED]
    elif archive is not None:
        options += [f"-XX:ArchiveClassesAtExit={archive.draft}", _CHECKED]
    # The launcher, a Java process of its own, computes the command of the other.
    return {"SPARK_SUBMIT_OPTS": " ".join(options), "SPARK_LAUNCHER_OPTS": _QUICK}
