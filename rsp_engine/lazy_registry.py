"""A registry whose values are made, or imported, when they are first looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

__all__ = ["LazyRegistry", "importer"]

T = TypeVar("T")


class LazyRegistry(Mapping[str, T], Generic[T]):
    """A mapping from names to values, each of which a function makes at its first use.

    >>> squares = LazyRegistry({"two": lambda: 2 * 2, "zero": lambda: 1 // 0})
    >>> list(squares), squares["two"], "zero" in squares
    (['two', 'zero'], 4, True)
    """

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self._makers = makers
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def importer(module: str, name: str) -> Callable[[], Any]:
    """Return a function that imports a module and returns one of its names.

    >>> importer("math", "sqrt")()(9)
    3.0
    """
    return lambda: getattr(import_module(module), name)
