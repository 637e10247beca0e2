"""The pictures of the documents are what the project draws: `make pictures` draws them anew."""

from __future__ import annotations

import importlib.util
from xml.etree import ElementTree as ET

import pytest

from tests.data import PROJECT

PICTURES = PROJECT / "docs" / "pictures"


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("pictures", PROJECT / "scripts" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PICTURES


def texts(svg: str) -> list[str]:
    """Return what can be read in a picture, line by line."""
    root = ET.fromstring(svg)  # noqa: S314 - our own text
    return [(text.text or "").rstrip() for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_of_a_plan_is_what_is_drawn(pictures):
    kept = (PICTURES / "explain.svg").read_text(encoding="utf-8")
    assert pictures["explain.svg"]() == kept, "make pictures"


def test_the_picture_of_the_live_view_shows_what_is_drawn(pictures):
    # Another version of rich may write the same in another way.
    kept = (PICTURES / "live.svg").read_text(encoding="utf-8")
    assert texts(pictures["live.svg"]()) == texts(kept), "make pictures"
    assert "fresh" in "".join(texts(kept))


def test_the_same_run_draws_the_same_bytes(pictures):
    assert pictures["live.svg"]() == pictures["live.svg"]()


@pytest.mark.parametrize("name", ["explain.svg", "live.svg"])
def test_a_picture_asks_nobody_for_anything(name):
    kept = (PICTURES / name).read_text(encoding="utf-8")
    assert "url(" not in kept.replace("url(#", "")
    assert "href" not in kept
