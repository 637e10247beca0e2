"""Garbage: a pause of its collector, and freed memory that the process keeps for new objects."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["keep_freed_memory", "no_garbage_collection", "own_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
_MOST_FREE_BYTES = 1 << 24
_HEAP_BYTES = 1 << 22  # larger than any column of a split of the local driver


@contextmanager
def no_garbage_collection(*, is_loading: bool = False) -> Iterator[None]:
    """Pause the garbage collector, unless it is paused already. Also a decorator.

    It is for many lasting objects without cycles: the collector runs by the number of new objects,
    so it would walk all of them again and again, and find nothing.

    With `is_loading`, for something that is done once, most new objects stay as long as the run.
    The collector then counts them among the old ones, without a walk over all of them. Do not use
    it often: it counts the objects that are frozen.

    >>> with no_garbage_collection():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if is_loading and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # to the oldest generation
            gc.enable()


def own_memory() -> None:
    """Set up the memory of a process that has nothing to do but its run, once it is about to start.

    What exists by then lives as long as the run, so the collector does not scan it.
    """
    keep_freed_memory()
    gc.freeze()


def keep_freed_memory() -> None:
    """Keep up to 16 MB of freed memory, instead of returning it to the system each time.

    The arrays of each split take the place of those before: the system would have to clear their
    pages anew, which costs a sixth of a run. It is a setting of the whole process, and only of the
    C library of GNU.
    """
    import ctypes  # NumPy has imported it by then; `rsp --version` does not need it

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _MOST_FREE_BYTES)
        mallopt(_MMAP_THRESHOLD, _HEAP_BYTES)
