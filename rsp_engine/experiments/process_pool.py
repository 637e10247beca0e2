"""The one place where the tasks of a suite are spread: over processes, or over none.

Any other way to spread them, such as a cluster, is a function of the same form: it takes a plain
function and plain tasks, and yields each task with its result as soon as there is one.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["PoolSize", "in_turn", "over_processes"]

T = TypeVar("T")
R = TypeVar("R")


class PoolSize(Protocol):
    """A way to work on tasks."""

    def __call__(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
        """Yield each task with its result, in any order."""


def in_turn(work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
    """Work on one task after the other, in this process.

    >>> list(in_turn(abs, [-1, 2]))
    [(-1, 1), (2, 2)]
    """
    for task in tasks:
        yield task, work(task)


def over_processes(workers: int) -> PoolSize:
    """Return a way to work on tasks in so many processes, which know nothing of this one."""
    if workers < 1:
        raise ValueError("there must be at least 1 worker")

    def spread(work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            try:
                given = {pool.submit(work, task): task for task in tasks}
                for done in as_completed(given):
                    yield given[done], done.result()
            finally:  # who stops early need not wait for what nobody wants
                pool.shutdown(wait=False, cancel_futures=True)

    return spread
