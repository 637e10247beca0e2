"""The stream test: feeds an engine, moves event time, and compares answers with tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self

from rsp_engine.grammar.iris import full_iri
from rsp_engine.io.sinks.jsonl import JsonLinesWriter
from rsp_engine.model.option import milliseconds
from rsp_engine.testing.answer_table import AnswerTable
from rsp_engine.testing.difference import difference
from rsp_engine.testing.elements import USUAL_PREFIXES, element_lines, with_declarations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rsp_engine.drivers.fed_run import FedRun
    from rsp_engine.engine import Engine
    from rsp_engine.model.answers import Answer
    from rsp_engine.model.option import DurationLike
    from rsp_engine.model.streams import DeadLetter

__all__ = ["StreamTest"]


class StreamTest:
    """A test of the queries of an engine.

    Set the engine up and register its queries; bind no stream. Then feed elements, let event time
    pass, and say which answers you expect. No clock is read. What the queries depend on besides, a
    service for instance, can be changed between two steps. As a context manager, the test closes
    the engine.

    Texts know the prefixes of the registered queries; `:` is `http://example.org/` unless a query
    declares it.

    Args:
        engine: The engine, with its queries.

    >>> from rsp_engine import Engine
    >>> engine = Engine()
    >>> _ = engine.register('''
    ...     PREFIX : <http://example.org/>
    ...     SELECT ?room ?t FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
    ...     WHERE { WINDOW :w { ?room :temperature ?t } } ORDER BY DESC(?t) LIMIT 1''')
    >>> with StreamTest(engine) as test:
    ...     test.feed(":s", "1s  :a :temperature 20 .")
    ...     test.feed(":s", "2s  :b :temperature 25 .")
    ...     test.expect_nothing()
    ...     test.advance("10s")
    ...     test.expect('''
    ...         close  rank  ?room  ?t  exact
    ...         10s    1     :b     25  true''')
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._started: FedRun | None = None
        self._compared = 0
        self.answers: list[Answer] = []
        """All answers so far."""
        self.dead_letters: list[DeadLetter] = []
        """All input that was set aside so far: late or malformed elements."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def feed(self, stream: str, elements: str | Iterable[tuple[DurationLike, str]]) -> None:
        """Feed elements to a stream, in the order in which they arrive.

        Args:
            stream: The IRI of the stream, or a name with a prefix.
            elements: A line for each element: its time, a blank, and Turtle; or pairs of both. A
                time is milliseconds or a duration.

        Raises:
            BindingError: If no query reads the stream.
            CaseError: If a line does not begin with a time.
        """
        self._feed(self._run().feed, stream, elements)

    def change(self, service: str, elements: str | Iterable[tuple[DurationLike, str]]) -> None:
        """Feed elements to the change stream of a service, which `Engine.changes` declared.

        Args:
            service: The IRI of the service, or a name with a prefix.
            elements: As for `feed`.

        Raises:
            BindingError: If the service has no change stream.
            CaseError: If a line does not begin with a time.
        """
        self._feed(self._run().change, service, elements)

    def advance(self, to: DurationLike) -> None:
        """Let event time pass an instant, so that the windows up to it are answered.

        Args:
            to: The instant, in milliseconds or as a duration since 0.
        """
        self.answers += self._run().advance(milliseconds(to))

    def end(self) -> None:
        """End the streams, so that all windows that hold an element are answered."""
        self.answers += self._run().end()

    def expect(self, table: str) -> None:
        """Compare the answers since the last comparison with a table.

        Args:
            table: A header and a line for each row, see `rsp_engine.testing.answer_table`.

        Raises:
            AssertionError: If the answers differ; the text shows where.
            CaseError: If the table is malformed.
        """
        __tracebackhide__ = True
        writer = JsonLinesWriter()
        records = [json.loads(writer(answer)) for answer in self._new_answers()]
        _fail(AnswerTable(table, self._prefixes()).compare(records))

    def expect_nothing(self) -> None:
        """Check that there are no answers since the last comparison.

        Raises:
            AssertionError: If there are.
        """
        __tracebackhide__ = True
        new = [f"{a.query}, {a.window.open} to {a.window.close}" for a in self._new_answers()]
        _fail(difference("answers", [], new))

    def expect_dead_letters(self, *reasons: str) -> None:
        """Compare the reasons of all dead letters so far, in their order.

        Args:
            reasons: The reasons, or their kinds: `late`, `malformed`, `before t0`, `unsupported`.

        Raises:
            AssertionError: If there are others.
        """
        __tracebackhide__ = True
        found = [
            letter.kind if letter.kind in reasons else letter.reason for letter in self.dead_letters
        ]
        _fail(difference("dead letters", reasons, found))

    def _run(self) -> FedRun:
        if self._started is None:
            self._started = self._engine.begin(dead_letter=self.dead_letters.append)
        return self._started

    def _prefixes(self) -> dict[str, str]:
        return {**USUAL_PREFIXES, **self._engine.prefixes}

    def _feed(
        self,
        take: Callable[[str, int, str], list[Answer]],
        name: str,
        elements: str | Iterable[tuple[DurationLike, str]],
    ) -> None:
        prefixes = self._prefixes()
        iri = full_iri(name, prefixes) or name
        pairs = element_lines(elements) if isinstance(elements, str) else elements
        for time, turtle in pairs:
            self.answers += take(iri, milliseconds(time), with_declarations(turtle, prefixes))

    def _new_answers(self) -> list[Answer]:
        new, self._compared = self.answers[self._compared :], len(self.answers)
        return new


def _fail(text: str) -> None:
    __tracebackhide__ = True
    if text:
        raise AssertionError(text)
