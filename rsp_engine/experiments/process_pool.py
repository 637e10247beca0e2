"""Task runners: ways to run the tasks of a suite, in this process or in several others.

Any other way, such as a cluster, is a function of the same form: it takes a plain function and
plain tasks, and yields each task with its result as soon as the result is available.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["TaskRunner", "in_turn", "over_processes"]

T = TypeVar("T")
R = TypeVar("R")


class TaskRunner(Protocol):
    """A function that applies another function to tasks."""

    def __call__(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
        """Yield each task with its result, in any order."""


def in_turn(work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
    """Run one task after the other, in this process.

    >>> list(in_turn(abs, [-1, 2]))
    [(-1, 1), (2, 2)]
    """
    for task in tasks:
        yield task, work(task)


def over_processes(workers: int) -> TaskRunner:
    """Return a task runner that spawns `workers` processes."""
    if workers < 1:
        raise ValueError("there must be at least 1 worker")

    def run(work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[T, R]]:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            try:
                futures = {pool.submit(work, task): task for task in tasks}
                for done in as_completed(futures):
                    yield futures[done], done.result()
            finally:  # a consumer that stops early does not wait for the remaining tasks
                pool.shutdown(wait=False, cancel_futures=True)

    return run
