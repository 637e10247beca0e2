"""Queries: the SPARQL 1.1 query forms, and RSP-QL's REGISTER and FROM NAMED WINDOW."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf

from rsp_engine.grammar.tree.expressions import Expression
from rsp_engine.grammar.tree.node import Node
from rsp_engine.grammar.tree.patterns import GroupPattern, InlineData, TriplesBlock
from rsp_engine.grammar.tree.terms import Iri, Var

__all__ = [
    "AskForm",
    "BareName",
    "BaseDecl",
    "ConstructForm",
    "Count",
    "CountWindow",
    "DatasetClause",
    "DescribeForm",
    "Duration",
    "From",
    "FromNamed",
    "FromWindow",
    "GroupKey",
    "Modifiers",
    "OrderCondition",
    "PrefixDecl",
    "QueryForm",
    "QueryUnit",
    "Register",
    "RegisteredR2S",
    "SelectAs",
    "SelectClause",
    "SelectForm",
    "SubSelect",
    "TimeWindow",
]

RegisteredR2S = OneOf["RSTREAM", "ISTREAM", "DSTREAM"]


@dataclass(frozen=True, slots=True)
class BaseDecl(Node):
    """`BASE <iri>`."""

    iri: Iri


@dataclass(frozen=True, slots=True)
class PrefixDecl(Node):
    """`PREFIX name: <iri>`; the name is without its colon."""

    prefix: str
    iri: Iri


@dataclass(frozen=True, slots=True)
class BareName(Node):
    """The name of a registered query as a bare word, not an IRI."""

    value: str


@dataclass(frozen=True, slots=True)
class Register(Node):
    """`REGISTER [RSTREAM | ISTREAM | DSTREAM | STREAM | QUERY] name AS`."""

    name: Iri | BareName
    kind: OneOf["RSTREAM", "ISTREAM", "DSTREAM", "STREAM", "QUERY"] | None = None

    @property
    def r2s(self) -> RegisteredR2S:
        """The relation-to-stream operator: emit all rows, the new ones, or the removed ones."""
        return self.kind if self.kind in ("ISTREAM", "DSTREAM") else "RSTREAM"


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """A length of time; `bare` if it is written without a unit, which means milliseconds."""

    milliseconds: int
    bare: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Count(Node):
    """A number of window elements or of answer rows."""

    value: int


@dataclass(frozen=True, slots=True)
class TimeWindow(Node):
    """`[RANGE r STEP b]`; without a step it tumbles."""

    range: Duration
    step: Duration | None = None


@dataclass(frozen=True, slots=True)
class CountWindow(Node):
    """`[ELEMENTS n STEP m]`; without a step it tumbles."""

    unit: OneOf["ELEMENTS", "TRIPLES", "ROWS"]
    size: Count
    step: Count | None = None


@dataclass(frozen=True, slots=True)
class From(Node):
    """`FROM <graph>`: a static graph, part of the default graph."""

    graph: Iri


@dataclass(frozen=True, slots=True)
class FromNamed(Node):
    """`FROM NAMED <graph>`: a static graph, by its name."""

    graph: Iri


@dataclass(frozen=True, slots=True)
class FromWindow(Node):
    """`FROM NAMED WINDOW :w ON STREAM :s [...]`."""

    window: Iri
    stream: Iri
    frame: TimeWindow | CountWindow


DatasetClause = From | FromNamed | FromWindow


@dataclass(frozen=True, slots=True)
class SelectAs(Node):
    """`(expression AS ?v)` in SELECT."""

    expression: Expression
    variable: Var


@dataclass(frozen=True, slots=True)
class SelectClause(Node):
    """`SELECT [DISTINCT | REDUCED] ...`; `items` is empty for `*`."""

    items: tuple[Var | SelectAs, ...]
    modifier: OneOf["DISTINCT", "REDUCED"] | None = None


@dataclass(frozen=True, slots=True)
class GroupKey(Node):
    """One condition of GROUP BY."""

    expression: Expression
    variable: Var | None = None


@dataclass(frozen=True, slots=True)
class OrderCondition(Node):
    """One condition of ORDER BY."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Modifiers(Node):
    """The solution modifiers: GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET."""

    group_by: tuple[GroupKey, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[OrderCondition, ...] = ()
    limit: Count | None = None
    offset: Count | None = None


@dataclass(frozen=True, slots=True)
class SelectForm(Node):
    """A SELECT query."""

    keyword = "SELECT"

    clause: SelectClause
    dataset: tuple[DatasetClause, ...]
    where: GroupPattern
    modifiers: Modifiers


@dataclass(frozen=True, slots=True)
class SubSelect(Node):
    """A SELECT query inside a group."""

    keyword = "SELECT"

    clause: SelectClause
    where: GroupPattern
    modifiers: Modifiers
    values: InlineData | None = None


@dataclass(frozen=True, slots=True)
class ConstructForm(Node):
    """A CONSTRUCT query. The pattern of `CONSTRUCT WHERE { ... }` is its template as well."""

    keyword = "CONSTRUCT"

    template: TriplesBlock | None
    dataset: tuple[DatasetClause, ...]
    where: GroupPattern
    modifiers: Modifiers


@dataclass(frozen=True, slots=True)
class AskForm(Node):
    """An ASK query."""

    keyword = "ASK"

    dataset: tuple[DatasetClause, ...]
    where: GroupPattern
    modifiers: Modifiers


@dataclass(frozen=True, slots=True)
class DescribeForm(Node):
    """A DESCRIBE query; `targets` is empty for `*`."""

    keyword = "DESCRIBE"

    targets: tuple[Var | Iri, ...]
    dataset: tuple[DatasetClause, ...]
    where: GroupPattern | None
    modifiers: Modifiers


QueryForm = SelectForm | ConstructForm | AskForm | DescribeForm


@dataclass(frozen=True, slots=True)
class QueryUnit(Node):
    """A whole query text: prologue, REGISTER, query form and trailing VALUES."""

    prologue: tuple[BaseDecl | PrefixDecl, ...]
    register: Register | None
    form: QueryForm
    values: InlineData | None = None

    @property
    def windows(self) -> tuple[FromWindow, ...]:
        """The windows that the query declares, in text order."""
        return tuple(c for c in self.form.dataset if isinstance(c, FromWindow))

    @property
    def prefixes(self) -> dict[str, str]:
        """The namespace of each prefix; the last declaration of a prefix counts."""
        return {d.prefix: d.iri.value for d in self.prologue if isinstance(d, PrefixDecl)}
