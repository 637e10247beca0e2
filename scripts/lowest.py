"""Write the lowest versions that pyproject.toml allows, as a file of requirements for pip.

python scripts/lowest.py FILE

What the tests need of the extras is added; pytest and its like are taken as they are.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
EXTRAS = ("mqtt", "ws", "kafka", "jelly", "metrics", "demo")
TOOLS = ("hypothesis", "pytest", "pytest-xdist")


def requirements() -> list[str]:
    """Return the requirements, each with the version that it names as its lowest."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(each for name in EXTRAS for each in extras[name])]
    tools = [each for each in extras["dev"] if re.match(r"[\w-]+", each)[0] in TOOLS]  # type: ignore[index]
    return [re.sub(r">=", "==", each) for each in needed] + tools


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(requirements()) + "\n", encoding="utf-8")
