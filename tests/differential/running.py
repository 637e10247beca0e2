"""The engine under test: one run of a case, by an operator and a way to read its streams.

memory      pairs of a time and a text, element by element
file        a file of N-Quads, in batches of elements
checkpoint  the same with a checkpoint: places of the file, whose plain lines are read as arrays
cut         the same places, sent as executors send them; the run is restored after each batch
shared      the same, with windows evaluated by tasks and by the driver, by turns
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyoxigraph as ox

from rsp_engine.engine import Engine
from rsp_engine.errors import BindingError, PlanError
from rsp_engine.grammar import checked
from rsp_engine.model.answers import Row, Solutions
from rsp_engine.options import OPERATORS
from tests.differential.evaluation import Answer, Case, Shown
from tests.differential.terms import EX, Blank, Iri, Literal, Term
from tests.drivers.split_runs import Shared, in_splits

if TYPE_CHECKING:
    from rsp_engine.model.streams import DeadLetter
    from tests.differential.evaluation import Aside
    from tests.differential.windows import Element

WAYS = ("memory", "file", "checkpoint", "cut", "shared")
EXACT_OPERATORS = tuple(name for name in OPERATORS if name != "approximate")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave: its answers, whether each claims to be exact, and what was set aside."""

    answers: list[Answer]
    are_exact: list[bool]
    aside: Aside


def engine_of(case: Case, operator: str, **more: Any) -> Engine:
    """Return an engine with the query of a case, and without its streams."""
    setting = case.setting
    options = {**case.options, **more}
    if case.arrivals is not None:
        options["arrivals"] = case.arrivals
    engine = Engine(
        bounds=setting.bounds,
        t0=setting.t0,
        report=setting.report,
        max_delay=setting.max_delay,
        match=case.match,
        operator=operator,  # type: ignore[arg-type]
        **options,
    )
    for service, triples in case.services.items():
        store = ox.Store()
        store.extend(ox.Quad(*map(_as_ox, triple)) for triple in triples)  # type: ignore[arg-type]
        engine.service(service.value, store)
    with patch("rsp_engine.engine.checked", _checked):
        engine.register(case.query())
    return engine


_checked = lru_cache(maxsize=4)(checked)


def is_refusal(error: Exception) -> bool:
    """Tell whether the planner says that an operator, or a policy of a list, is not for a query."""
    if isinstance(error, BindingError):
        return "elects from the list of a top-k operator" in str(error)
    return isinstance(error, PlanError) and "cannot run this query" in str(error)


def run(case: Case, operator: str, way: str) -> Outcome:
    """Run a case by one operator, its streams read in one way."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        if way == "cut":
            stack.enter_context(in_splits(size=300, cuts=range(1000), are_compared=False))
        if way == "shared":
            turns, cuts = Shared("turns", small_bytes=200), range(0, 1000, 3)
            stack.enter_context(in_splits(shared=turns, size=300, cuts=cuts, are_compared=False))
        more: dict[str, Any] = {}
        if way == "checkpoint":
            more = {"checkpoint": folder / "checkpoint", "split_bytes": 400}
        letters: list[DeadLetter] = []
        engine = engine_of(case, operator, dead_letter=letters.append, **more)
        for stream, sources in case.streams.items():
            for number, elements in enumerate(sources):
                if way == "memory":
                    engine.bind(EX + stream, [(e.timestamp, _turtle(e)) for e in elements])
                else:
                    path = folder / f"{stream}{number}.nq"
                    path.write_text("".join(map(_quads, range(10**6), elements)), encoding="utf-8")
                    engine.bind(EX + stream, str(path))
        found = list(engine.run())
        answers = [
            Answer(a.window.open, a.window.close, tuple(map(_shown, _rows(a.content))))
            for a in found
        ]
        exact = [bool(a.stats["exact"]) for a in found]
        return Outcome(answers, exact, Counter(map(_aside, letters)))


def _rows(content: object) -> tuple[Row, ...]:
    assert isinstance(content, Solutions)
    return content.rows


def _turtle(element: Element) -> str:
    return "".join(f"{line} .\n" for line in element.lines())


def _quads(number: int, element: Element) -> str:
    graph = f"<{EX}g/{number}/{element.timestamp}>"
    return "".join(f"{line} {graph} .\n" for line in element.lines())


def _aside(letter: DeadLetter) -> tuple[str, str]:
    """Return the triples of a dead letter, without dots and graphs, and the kind of its reason."""
    lines = letter.raw.decode().splitlines()
    triples = (line.removesuffix(" .").partition(f" <{EX}g/")[0] for line in lines)
    return "\n".join(triples), letter.reason.partition(":")[0]


def _shown(row: Row) -> Shown:
    bindings = {name: _term(term) for name, term in row.bindings.items()}
    return Shown(row.rank, bindings, row.score)  # type: ignore[arg-type]


def _term(term: object) -> Term:
    match term:
        case ox.NamedNode():
            return Iri(term.value)
        case ox.BlankNode():
            return Blank(term.value)
        case ox.Literal():
            return Literal(term.value, term.datatype.value, term.language or "")
        case _:
            raise AssertionError


def _as_ox(term: Term) -> ox.NamedNode | ox.Literal:
    match term:
        case Iri(value):
            return ox.NamedNode(value)
        case Literal(text, datatype, language) if not language:
            return ox.Literal(text, datatype=ox.NamedNode(datatype))
        case Literal(text, _, language):
            return ox.Literal(text, language=language)
        case _:
            raise AssertionError
