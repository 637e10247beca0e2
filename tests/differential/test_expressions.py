"""The expressions of the families have the values that Oxigraph gives them, term by term."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

from tests.differential.expressions import text, value
from tests.differential.families.drawing import (
    CALCULABLE,
    POOLS,
    S,
    V,
    condition,
    of_term,
    pool,
    score,
)
from tests.differential.terms import ex, written
from tests.thoroughness import TIMES

if TYPE_CHECKING:
    from tests.differential.expressions import Expression


def drawn(chance: Random, *, is_calculated: bool) -> Expression:
    if is_calculated:
        return score(chance, chance.choice((["v"], ["v", "u"])))
    return chance.choice((of_term(chance, V, S), condition(chance, V, S).condition))


@pytest.mark.parametrize("part", range(4))
def test_a_value_is_the_same_in_oxigraph(part):
    store = ox.Store()
    for seed in range(part, 1_000 * TIMES, 4):
        chance = Random(seed)  # noqa: S311 - repeatable on purpose
        is_calculated = chance.random() < 0.6
        values = pool(chance, CALCULABLE if is_calculated else tuple(POOLS))
        solution = {"s": ex("a"), "v": chance.choice(values), "u": chance.choice(values)}
        expression = drawn(chance, is_calculated=is_calculated)
        given = " ".join(map(written, solution.values()))
        query = f"SELECT ({text(expression)} AS ?x) {{ VALUES (?s ?v ?u) {{ ({given}) }} }}"
        [[found]] = store.query(query)  # type: ignore[misc]
        shown = "" if found is None else str(found)
        assert shown == written(value(expression, solution)), f"seed {seed}: {query}"


@pytest.mark.parametrize("name", POOLS)
def test_literals_are_canonical(name):
    """A pool has its terms in the form in which a store of Oxigraph gives them back."""
    node = ox.NamedNode("urn:x")
    for term in POOLS[name]:
        store = ox.Store()
        store.load(f"<urn:x> <urn:x> {written(term)} .".encode(), format=ox.RdfFormat.N_TRIPLES)
        [quad] = store.quads_for_pattern(node, node, None)
        assert str(quad.object) == written(term)
