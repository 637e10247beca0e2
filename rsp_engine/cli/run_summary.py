"""The summary of a run on standard error: what was read, answered, fetched and set aside.

If nothing matched a query, the summary names its predicates that were never seen in the stream.
"""

from __future__ import annotations

import os
from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING

import typer

from rsp_engine.grammar import tree
from rsp_engine.io.sinks.term_text import iso_time
from rsp_engine.io.sources.predicate_sample import MOST_SAMPLED
from rsp_engine.model.answers import Boolean, Graph, Solutions
from rsp_engine.model.display import TermFormatter, printable
from rsp_engine.model.quantities import quantity
from rsp_engine.monitor.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rsp_engine.cli.query_setup import Registered
    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.drivers.unseen_predicates import UnseenPredicates
    from rsp_engine.engine import Engine
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.streams import DeadLetter
    from rsp_engine.monitor.run_monitor import DeliveringSink, DeliveryStatus

__all__ = ["RunSummary"]

_LONGEST = 200
"""The most characters of a reason that are shown."""
_NOUNS = {
    "SELECT": ("row", "rows"),
    "CONSTRUCT": ("triple", "triples"),
    "ASK": ("true answer", "true answers"),
}
_AS_SECONDS = range(1_000_000_000, 4_000_000_000)
"""Times that are of 2001 to 2096 in seconds, and of January and February 1970 in milliseconds."""
_MOST_NAMED = 5
"""The most predicates that are named."""


class RunSummary:
    """A summary that grows with a run; `quiet` ones print nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._is_quiet = quiet
        self._windows = 0
        self._rows: Counter[str] = Counter()
        self._fetches, self._requests = 0, 0
        self._faults: Counter[str] = Counter()
        self._services: dict[str, str] = {}
        """The addresses of the services of each query."""
        self._first: dict[str, DeadLetter] = {}
        self._judged, self._ndcg, self._precision = 0, 0.0, 0.0

    def name_services(self, registered: Registered) -> None:
        """Set the services that queries call, to name them in warnings."""
        for query in registered.queries:
            called = dict.fromkeys(each.pattern.service for each in query.physical.services)
            urls = [registered.services[iri] for iri in called if iri in registered.services]
            self._services[query.physical.name] = " or ".join(urls)

    def add(self, answer: Answer) -> None:
        """Add an answer; warn of a fault of a service when it first happens."""
        stats = answer.stats
        if not self._windows:
            self._check_times(answer)
        self._windows += 1
        self._rows[answer.query] += _rows(answer.content)
        self._fetches += stats.get("budget_spent", 0)
        self._requests += stats.get("requests", 0)
        self._add_faults(stats.get("faults", {}), self._services.get(answer.query))
        if "ndcg" in stats:
            self._judged += 1
            self._ndcg += stats["ndcg"]
            self._precision += stats["precision"]

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """Add input that was set aside."""
        self._first.setdefault(letter.kind, letter)

    def print(
        self,
        engine: Engine,
        queries: Sequence[Query],
        dead_letters: str | None,
        sinks: Sequence[DeliveringSink] = (),
    ) -> None:
        """Print the summary; `dead_letters` is the file of the dead letters, if there is one."""
        if self._is_quiet:
            return
        hide = Redactor(os.environ)
        for line in (
            self._totals(engine, queries),
            *self._set_aside(engine.counts.dead, dead_letters),
            *self._quality(),
            *(_delivered(sink.status) for sink in sinks),
            *(note for query in queries for note in self._notes(engine, query)),
        ):
            typer.echo(hide(line), err=True)

    def _check_times(self, answer: Answer) -> None:
        """Warn if seconds since 1970 seem to be taken for milliseconds."""
        if answer.window.close in _AS_SECONDS and not self._is_quiet:
            shown = iso_time(answer.window.close)
            warning = f"warning: times are in 1970, around {shown}: are they seconds?"
            hint = "times are milliseconds; if these are seconds, write unit=s: SOURCE?unit=s"
            typer.echo(f"{warning}\n  = hint: {hint}", err=True)

    def _add_faults(self, faults: Mapping[str, int], service: str | None) -> None:
        for cause, number in faults.items():
            if cause not in self._faults and not self._is_quiet:
                warning = f"warning: a request to {service or 'a service'} failed: {cause}"
                hint = "answers use the values in the replica; rsp doctor probes endpoints"
                typer.echo(Redactor(os.environ)(f"{warning}\n  = hint: {hint}"), err=True)
            self._faults[cause] += number

    def _totals(self, engine: Engine, queries: Sequence[Query]) -> str:
        parts = [quantity(engine.counts.elements, "element"), quantity(self._windows, "window")]
        for form, nouns in _NOUNS.items():
            asked = [query.physical.name for query in queries if _form(query) == form]
            if asked:
                parts.append(quantity(sum(self._rows[name] for name in asked), *nouns))
        if any(query.physical.services for query in queries):
            fetches = quantity(self._fetches, "fetch", "fetches")
            parts.append(f"{fetches} in {quantity(self._requests, 'request')}")
        if between := engine.counts.between_windows:
            parts.append(f"{quantity(between, 'element')} between windows")
        return ", ".join(parts)

    def _set_aside(self, dead: Mapping[str, int], kept: str | None) -> Iterator[str]:
        """Yield a line for each kind of dead letters, with the way out or the first reason."""
        for kind, number in sorted(dead.items()):
            line = f"{quantity(number, 'element')} set aside: {kind}"
            first = self._first.get(kind)
            if kind == "late":
                line += "; --max-delay DURATION waits for late elements"
            elif first is not None:
                reason = printable(first.reason.removeprefix(f"{kind}: "), _LONGEST)
                line += f"; the first is {first.source}, line {first.position}: {reason}"
            yield line
        if dead:
            yield (
                f"{kept} has what was set aside"
                if kept
                else "--dead-letters FILE keeps what is set aside"
            )

    def _quality(self) -> Iterator[str]:
        """Yield the faults of services, and the mean quality of answers against the oracle."""
        if self._judged:
            ndcg, precision = self._ndcg / self._judged, self._precision / self._judged
            means = f"against the oracle: nDCG {ndcg:.3f}, precision {precision:.3f}"
            yield f"{means}, mean of {quantity(self._judged, 'window')}"
        if self._faults:
            kinds = ", ".join(f"{cause} {number}" for cause, number in sorted(self._faults.items()))
            yield f"{quantity(self._faults.total(), 'fault')} of services ({kinds})"

    def _notes(self, engine: Engine, query: Query) -> Iterator[str]:
        """Yield why a query may have matched nothing; a count of nothing is a row too."""
        name = query.physical.name
        has_rows = self._rows[name] > 0
        if has_rows and next(tree.find(query.query, tree.Aggregate), None) is None:
            return
        terms = TermFormatter(query.query.prefixes)
        unseen = engine.unseen_predicates(name)
        if not self._windows:  # nothing new since the checkpoint, or stopped before a window closed
            return
        if unseen:
            what = "may have counted nothing" if has_rows else "matched nothing"
            hints = (f"\n  = hint: {_hint(each, terms)}" for each in unseen)
            yield f"note: {terms.iri(name)} {what}{''.join(hints)}"
        elif _is_surprising(engine, query) and not (has_rows or self._faults):
            hint = "the stream has its predicates: check its filters, its joins and its windows"
            yield f"note: {terms.iri(name)} matched nothing\n  = hint: {hint}"


def _delivered(status: DeliveryStatus) -> str:
    """Return what a sink has delivered, and what not."""
    line = f"{quantity(status.delivered, 'answer')} delivered to {status.name}"
    if status.waiting:
        line += f", {status.waiting:,} not"
    if status.failures:
        line += f"; {quantity(status.failures, 'attempt')} failed"
    return line


def _is_surprising(engine: Engine, query: Query) -> bool:
    """Return whether no rows are a surprise; DSTREAM outputs only rows that are gone."""
    dead = sum(engine.counts.dead.get(kind, 0) for kind in ("late", "before t0", "unsupported"))
    return engine.counts.elements > dead and query.physical.r2s != "DSTREAM"


def _form(query: Query) -> str:
    return query.physical.operator.query.form


def _rows(content: Solutions | Graph | Boolean) -> int:
    match content:
        case Solutions():
            return len(content.rows)
        case Graph():
            return len(content.triples)
        case Boolean():
            return int(content.value is True)


def _hint(found: UnseenPredicates, terms: TermFormatter) -> str:
    """Return a hint that names unseen predicates, and the ones that may be meant."""
    part = "" if found.is_whole else f" in the first {MOST_SAMPLED:,} triples"
    unseen = _listed([terms.iri(name) for name in found.unseen], "and")
    verb = "was" if len(found.unseen) == 1 else "were"
    text = f"{unseen} {verb} never seen{part} on {terms.iri(found.stream)}"
    seen = sorted(map(terms.iri, found.seen))
    close = [near for name in found.unseen for near in get_close_matches(terms.iri(name), seen, 1)]
    if close:
        return f"{text}; did you mean {_listed(list(dict.fromkeys(close)), 'or')}?"
    return f"{text}; it has {_listed(seen, 'and')}"


def _listed(names: Sequence[str], word: str) -> str:
    """Return names as a list in words.

    >>> _listed(["a", "b", "c"], "and"), _listed(["a"], "or")
    ('a, b and c', 'a')
    """
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} others"]
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
