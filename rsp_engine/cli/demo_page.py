"""The page of `rsp demo`: text and a table, on a terminal or elsewhere."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rsp_engine.experiments.demonstration import DemoWindow

__all__ = ["DemoPage"]

_K = 5
"""How many users the query ranks."""
_LIST = 5 * _K - 1
"""The width of a list of users: three digits each, a mark, and a space between them."""
_WIDEST = 96
"""A terminal needs so many columns to show the exact answer too."""
_BAR = 20


class DemoPage:
    """The output of the demo: an introduction, the phases of its start, a table, a conclusion."""

    def __init__(self, policy: str, budget: int) -> None:
        self._console = console = Console(highlight=False, markup=False)
        self._policy, self._budget = policy, budget
        self._windows: list[DemoWindow] = []
        is_plain = not (console.encoding or "").lower().startswith("utf")
        self._full, self._empty = ("#", ".") if is_plain else ("█", "░")
        self._is_wide = not console.is_terminal or console.width >= _WIDEST

    def introduce(self, speed: float) -> None:
        """Say what is shown."""
        self._print(
            f"Which {_K} users should we contact right now?\n\n"
            f"Mentions of users are a stream, replayed {speed:g} times faster than in real time.\n"
            "How fast a user's followers grow is on a SPARQL server, and changes all the time.\n"
            f"Each window ranks some 30 users by both, and may fetch {self._budget} of them again:"
            f" {self._policy} chooses.\n"
            "Numbers are users, the best first; a star marks one whose place belongs to another.\n"
        )

    @contextmanager
    def phase(self, text: str) -> Iterator[None]:
        """Show that something starts: on a terminal, with the seconds that it takes."""
        begun = time.monotonic()
        if self._console.is_terminal:
            with _spinner(self._console, f"starting {text}"):
                yield
            took = time.monotonic() - begun
            self._print(f"  started {text}, in {took:.1f} s")
        else:
            self._print(f"  starting {text} ...")
            yield

    def show(self, window: DemoWindow) -> None:
        """Add a window to the table; the first one has the column heads above it."""
        if not self._windows:
            self._show_heads()
        self._windows.append(window)
        line = Text(f"{window.close // 1000:5} s  ")
        for users in (window.budgeted, window.stale):
            line.append(self._users(users, window.exact))
            line.append(f" {self._bar(_count_right(users, window.exact), _K)}  ")
        if self._is_wide:
            line.append(self._users(window.exact, window.exact))
        line.rstrip()
        self._print(line)

    def conclude(self) -> None:
        """Compare the answers of all windows, and say what the budget bought."""
        fetched = sum(window.fetched for window in self._windows)
        needed = sum(window.needed for window in self._windows)
        budgeted = self._mean_right([window.budgeted for window in self._windows])
        stale = self._mean_right([window.stale for window in self._windows])
        self._print(f"\nRight users of {_K}, on average over {len(self._windows)} windows:\n")
        for name, right, fetches in (
            (self._budget_head, budgeted, fetched),
            ("no refresh", stale, 0),
            ("all fetched", float(_K), needed),
        ):
            self._print(
                f"  {name:20} {self._bar(right, _BAR)} {right:4.1f}   {fetches:4} users fetched"
            )
        bought = f"{budgeted - stale:.1f} more right users" if budgeted > stale else "nothing"
        share = f"{100 * fetched / max(needed, 1):.0f} % of the fetches that exact answers need"
        self._print(f"\nThe budget bought {bought} a window, for {share}.")

    def _mean_right(self, column: Sequence[Sequence[str]]) -> float:
        """Return how many users of a column are right in a window, as it is printed."""
        pairs = zip(column, self._windows, strict=True)
        right = sum(_count_right(users, window.exact) for users, window in pairs)
        return round(right / len(self._windows), 1)

    @property
    def _budget_head(self) -> str:
        return f"{self._budget} fetches a window"

    def _show_heads(self) -> None:
        heads = f"window   {self._budget_head:{_LIST}} right  {'no refresh':{_LIST}} right"
        exact = "  all fetched: exact" if self._is_wide else ""
        self._print(Text(f"\n {heads}{exact}", "bold"))

    def _users(self, users: Sequence[str], exact: Sequence[str]) -> Text:
        """Return users in their order, with a mark where another one belongs."""
        found = Text()
        for place, user in enumerate(users):
            is_right = user in exact[place : place + 1]
            found.append(f"{user:>3}{' ' if is_right else '*'}", "" if is_right else "red")
            found.append(" ")
        found.truncate(_LIST, pad=True)
        return found

    def _bar(self, right: float, width: int) -> str:
        filled = round(right / _K * width)
        return self._full * filled + self._empty * (width - filled)

    def _print(self, line: str | Text) -> None:
        self._console.print(line, soft_wrap=not self._console.is_terminal)
        self._console.file.flush()


def _count_right(users: Sequence[str], exact: Sequence[str]) -> int:
    """Return how many places have the user that belongs there."""
    return sum(one == other for one, other in zip(users, exact, strict=False))


@contextmanager
def _spinner(console: Console, text: str) -> Iterator[None]:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(text, total=None)
        yield
