"""Queries as RSP-QL text."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from rsp_engine.grammar.tree import (
    AskForm,
    BareName,
    BaseDecl,
    ConstructForm,
    CountWindow,
    DatasetClause,
    DescribeForm,
    From,
    FromNamed,
    FromWindow,
    GroupKey,
    Modifiers,
    OrderCondition,
    PrefixDecl,
    QueryForm,
    QueryUnit,
    Register,
    SelectAs,
    SelectClause,
    SelectForm,
    SubSelect,
    TimeWindow,
    Var,
)
from rsp_engine.grammar.write.patterns import WritePatterns
from rsp_engine.model.durations import format_duration
from rsp_engine.model.terms.rdf_text import iri_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["WriteQueries"]


class WriteQueries(WritePatterns):
    """The writer of whole queries, one line per clause."""

    def query(self, query: QueryUnit) -> str:
        """Write a whole query."""
        return "".join(f"{line}\n" for line in self._lines(query))

    def _lines(self, query: QueryUnit) -> Iterator[str]:
        yield from map(self._declaration, query.prologue)
        if query.register is not None:
            yield self._register(query.register)
        yield from self._form(query.form)
        yield from self._modifiers(query.form.modifiers)
        if query.values is not None:
            yield self.values(query.values)

    def _declaration(self, declaration: BaseDecl | PrefixDecl) -> str:
        iri = iri_text(declaration.iri.value)
        if isinstance(declaration, BaseDecl):
            return f"BASE {iri}"
        return f"PREFIX {declaration.prefix}: {iri}"

    def _register(self, register: Register) -> str:
        name = (
            register.name.value if isinstance(register.name, BareName) else self.term(register.name)
        )
        return " ".join(["REGISTER", *filter(None, [register.kind]), name, "AS"])

    def _form(self, form: QueryForm) -> Iterator[str]:
        match form:
            case SelectForm(clause):
                yield self._select_clause(clause)
            case ConstructForm(template):
                yield f"CONSTRUCT {self.template(template)}"
            case AskForm():
                yield "ASK"
            case DescribeForm(targets):
                yield f"DESCRIBE {' '.join(map(self.term, targets)) or '*'}"
            case _ as unreachable:
                assert_never(unreachable)
        yield from map(self._dataset_clause, form.dataset)
        if form.where is not None:
            yield f"WHERE {self.group(form.where)}"

    def sub_select(self, query: SubSelect) -> str:
        """Write a sub-query, indented like its group."""
        lines = [
            self._select_clause(query.clause),
            f"WHERE {self.group(query.where)}",
            *self._modifiers(query.modifiers),
            *([] if query.values is None else [self.values(query.values)]),
        ]
        return f"\n{'  ' * self.indent}".join(lines)

    def _select_clause(self, clause: SelectClause) -> str:
        items = map(self._item, clause.items)
        return " ".join(
            ["SELECT", *filter(None, [clause.modifier]), *(items if clause.items else "*")]
        )

    def _item(self, item: Var | SelectAs) -> str:
        if isinstance(item, Var):
            return self.term(item)
        return f"({self.expression(item.expression)} AS {self.term(item.variable)})"

    def _dataset_clause(self, clause: DatasetClause) -> str:
        match clause:
            case From(graph):
                return f"FROM {self.term(graph)}"
            case FromNamed(graph):
                return f"FROM NAMED {self.term(graph)}"
            case FromWindow(window, stream, frame):
                names = f"{self.term(window)} ON STREAM {self.term(stream)}"
                return f"FROM NAMED WINDOW {names} [{self._frame(frame)}]"
            case _ as unreachable:
                assert_never(unreachable)

    def _frame(self, frame: TimeWindow | CountWindow) -> str:
        match frame:
            case TimeWindow(range_, step):
                size = f"RANGE {format_duration(range_.milliseconds)}"
                return size if step is None else f"{size} STEP {format_duration(step.milliseconds)}"
            case CountWindow(unit, size_, count):
                size = f"{unit} {size_.value}"
                return size if count is None else f"{size} STEP {count.value}"
            case _ as unreachable:
                assert_never(unreachable)

    def _modifiers(self, modifiers: Modifiers) -> Iterator[str]:
        if modifiers.group_by:
            yield f"GROUP BY {' '.join(map(self._group_key, modifiers.group_by))}"
        if modifiers.having:
            yield f"HAVING {' '.join(f'({self.expression(h)})' for h in modifiers.having)}"
        if modifiers.order_by:
            yield f"ORDER BY {' '.join(map(self._order_condition, modifiers.order_by))}"
        if modifiers.limit is not None:
            yield f"LIMIT {modifiers.limit.value}"
        if modifiers.offset is not None:
            yield f"OFFSET {modifiers.offset.value}"

    def _group_key(self, key: GroupKey) -> str:
        text = self.expression(key.expression)
        if key.variable is not None:
            return f"({text} AS {self.term(key.variable)})"
        return text if isinstance(key.expression, Var) else f"({text})"

    def _order_condition(self, condition: OrderCondition) -> str:
        text = self.expression(condition.expression)
        if condition.descending:
            return f"DESC({text})"
        return text if isinstance(condition.expression, Var) else f"ASC({text})"
