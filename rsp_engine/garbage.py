"""A pause of the garbage collector, while many lasting objects without cycles are made.

The collector runs by the number of new objects: it would walk all of them again and again, and find
nothing.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["no_garbage_collection"]


@contextmanager
def no_garbage_collection(*, is_loading: bool = False) -> Iterator[None]:
    """Pause the garbage collector, unless it is paused already. Also a decorator.

    With `is_loading`, for something that is done once, most new objects stay as long as the run.
    The collector then counts them among the old ones, without a walk over all of them.

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
