"""Bundled suites: the TOML files that ship with the package, found by name."""

from __future__ import annotations

from pathlib import Path

from rsp_engine.errors import SuiteError

__all__ = ["find_suite", "known_suites"]

_HERE = Path(__file__).resolve()
_PLACES = (_HERE.parent / "suites", _HERE.parents[2] / "examples" / "experiments")
"""The folder in an installed package, and the one in a checkout of the project."""


def known_suites() -> list[Path]:
    """Return the files of all bundled suites, those of the paper first."""
    folder = next((place for place in _PLACES if place.is_dir()), None)
    if folder is None:
        raise SuiteError("no suites came with this installation", "give the path of a TOML file")
    papers = ("preliminary", "experiment-1", "experiment-2", "experiment-3", "experiment-4")
    order = {name: place for place, name in enumerate(papers)}
    return sorted(folder.glob("*.toml"), key=lambda path: (order.get(path.stem, 9), path.stem))


def find_suite(name: str) -> Path:
    """Return the file of a suite, given its name or a path that ends in `.toml`."""
    if name.endswith(".toml"):
        return Path(name)
    known = {path.stem: path for path in known_suites()}
    if name not in known:
        raise SuiteError(f"there is no suite {name}", f"the suites are {', '.join(known)}")
    return known[name]
