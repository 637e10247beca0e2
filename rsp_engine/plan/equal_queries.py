"""Equal queries: those whose plans differ in their names only. One is evaluated for all.

Equal plans have the same windows, options, bindings and text, whatever the white space, comments
and prefixes of their queries. A query whose answers another one reads is evaluated by itself, since
these answers are a stream of its own.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.evaluators.service.shared_services import BudgetRules
    from rsp_engine.model.answers import Answer
    from rsp_engine.monitor.run_monitor import Counts

__all__ = ["EqualQueries"]


class EqualQueries:
    """The queries of a run, each with its equals."""

    def __init__(self, plans: Sequence[PhysicalPlan]) -> None:
        self.evaluated: list[PhysicalPlan] = []
        """The plans of which no two are equal, in their order."""
        self.equals: dict[str, list[str]] = {}
        """The names of the later queries that are equal to an evaluated one, by its name."""
        read = {scan.stream for plan in plans for scan in plan.scans}
        by_text: dict[str, list[PhysicalPlan]] = {}
        for plan in plans:
            alike = by_text.setdefault(plan.operator.query.sparql, [])
            first = None
            if plan.feeds not in read:
                nameless = replace(plan, name="", feeds=None)
                first = next(
                    (p for p in alike if replace(p, name="", feeds=None) == nameless), None
                )
            if first is not None:
                self.equals[first.name].append(plan.name)
                continue
            self.evaluated.append(plan)
            self.equals[plan.name] = []
            if plan.feeds not in read:
                alike.append(plan)

    @property
    def names(self) -> list[str]:
        """The names of all queries."""
        return [name for first, others in self.equals.items() for name in (first, *others)]

    def first_of(self, name: str) -> str:
        """Return the name of the query that is evaluated for the one of a name."""
        return next((first for first, others in self.equals.items() if name in others), name)

    def weighed(self, rules: BudgetRules) -> BudgetRules:
        """Return the weights of the queries that are evaluated: those of all equals together."""
        return replace(
            rules,
            weights={
                first: sum(map(rules.weight, (first, *others)))
                for first, others in self.equals.items()
            },
        )

    def named(self, answers: Generator[Answer], counts: Counts) -> Iterator[Answer]:
        """Yield each answer, and after it that of each equal query; the latter are counted here."""
        with closing(answers):
            for answer in answers:
                yield answer
                others = self.equals[answer.query]
                counts.answers += len(others)
                yield from (replace(answer, query=name) for name in others)
