"""Graph patterns as RSP-QL text."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, assert_never

from rsp_engine.grammar.tree import (
    Bind,
    BlankNodeProperties,
    Collection,
    Exists,
    FilterClause,
    GraphPattern,
    GroupPattern,
    InlineData,
    MinusPattern,
    OptionalPattern,
    Pattern,
    Property,
    ServicePattern,
    SubjectTriples,
    SubSelect,
    TriplesBlock,
    TriplesNode,
    UnionPattern,
    WindowPattern,
)
from rsp_engine.grammar.write.expressions import WriteExpressions

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["WritePatterns"]


class WritePatterns(WriteExpressions):
    """The writer of group graph patterns, one line per element."""

    def group(self, group: GroupPattern) -> str:
        """Write a group over several lines; an empty one as `{ }`."""
        if not group.elements:
            return "{ }"
        self.indent += 1
        lines = [line for element in group.elements for line in self._element(element)]
        self.indent -= 1
        return self._braces(lines)

    @abstractmethod
    def sub_select(self, query: SubSelect) -> str:
        """Write a sub-query."""

    def _braces(self, lines: Iterable[str]) -> str:
        inner, outer = "  " * (self.indent + 1), "  " * self.indent
        return "\n".join(["{", *(inner + line for line in lines), outer + "}"])

    def _element(self, element: Pattern | SubSelect) -> list[str]:
        if isinstance(element, TriplesBlock):
            return self.triples(element)
        return [self.element(element)]

    def element(self, element: Pattern | SubSelect) -> str:
        """Write one element of a group."""
        match element:
            case TriplesBlock():
                return "\n".join(self.triples(element))
            case GroupPattern():
                return self.group(element)
            case UnionPattern(groups):
                return " UNION ".join(map(self.group, groups))
            case OptionalPattern(group):
                return f"OPTIONAL {self.group(group)}"
            case MinusPattern(group):
                return f"MINUS {self.group(group)}"
            case GraphPattern(name, group):
                return f"GRAPH {self.term(name)} {self.group(group)}"
            case WindowPattern(name, group):
                return f"WINDOW {self.term(name)} {self.group(group)}"
            case ServicePattern(name, group, silent):
                word = "SERVICE SILENT" if silent else "SERVICE"
                return f"{word} {self.term(name)} {self.group(group)}"
            case FilterClause(condition):
                text = self.expression(condition)
                return f"FILTER {text if isinstance(condition, Exists) else f'({text})'}"
            case Bind(expression, variable):
                return f"BIND ({self.expression(expression)} AS {self.term(variable)})"
            case InlineData():
                return self.values(element)
            case SubSelect():
                return self.sub_select(element)
            case _ as unreachable:
                assert_never(unreachable)

    def triples(self, block: TriplesBlock) -> list[str]:
        """Write triples, one line per subject."""
        return [f"{self._subject(subject)} ." for subject in block.subjects]

    def template(self, template: TriplesBlock | None) -> str:
        """Write the template of a CONSTRUCT."""
        return "{ }" if template is None else self._braces(self.triples(template))

    def _subject(self, subject: SubjectTriples) -> str:
        properties = self._properties(subject.properties)
        return f"{self._node(subject.subject)} {properties}".rstrip()

    def _properties(self, properties: tuple[Property, ...]) -> str:
        return " ; ".join(
            f"{self.verb(p.verb)} {', '.join(map(self._node, p.objects))}" for p in properties
        )

    def _node(self, node: TriplesNode) -> str:
        match node:
            case Collection(items):
                return f"({' '.join(map(self._node, items))})"
            case BlankNodeProperties(properties):
                return f"[ {self._properties(properties)} ]" if properties else "[]"
            case _:
                return self.term(node)

    def values(self, data: InlineData) -> str:
        """Write inline data, with brackets unless there is a single variable."""
        rows = [["UNDEF" if v is None else self.term(v) for v in row] for row in data.rows]
        if len(data.variables) == 1:
            return f"VALUES {self.term(data.variables[0])} {{ {' '.join(v for (v,) in rows)} }}"
        variables = " ".join(map(self.term, data.variables))
        written = " ".join(f"({' '.join(row)})" for row in rows)
        return f"VALUES ({variables}) {{ {written} }}"
