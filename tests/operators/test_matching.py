"""Solutions of a pane that arrive in parts."""

from __future__ import annotations

import numpy as np
import pyoxigraph as ox

from rsp_engine.model.terms.lazy_text import WrittenRows
from rsp_engine.operators.sparql.pane_matcher import PaneSolutions


def test_empty_parts_do_not_determine_the_width_of_solutions():
    none = PaneSolutions(WrittenRows(0, []), np.empty(0, dtype=np.int64), np.empty(0))
    some = PaneSolutions(WrittenRows(1, ["<urn:a>"]), np.array([3]), np.array([0.5]))
    assert (
        PaneSolutions.joined([none, some, some]).read().solutions == [(ox.NamedNode("urn:a"),)] * 2
    )
    assert list(PaneSolutions.joined([none, none]).read().solutions) == []
