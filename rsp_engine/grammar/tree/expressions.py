"""Expressions (SPARQL 1.1, section 17). Brackets are not kept: the tree's shape implies them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from rsp_engine.grammar.tree.node import Node
from rsp_engine.grammar.tree.terms import Iri, Literal, Var

if TYPE_CHECKING:
    from rsp_engine.grammar.tree.patterns import GroupPattern

__all__ = [
    "AGGREGATE_NAMES",
    "Addend",
    "Aggregate",
    "And",
    "BuiltInCall",
    "Comparison",
    "Exists",
    "Expression",
    "Factor",
    "FunctionCall",
    "In",
    "NamedCall",
    "Or",
    "Product",
    "Sum",
    "Unary",
]

AggregateName = OneOf["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"]
AGGREGATE_NAMES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")


@dataclass(frozen=True, slots=True)
class Or(Node):
    """`x || y || ...`, two or more."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class And(Node):
    """`x && y && ...`, two or more."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`x < y` and the other comparisons."""

    operator: OneOf["=", "!=", "<", ">", "<=", ">="]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class In(Node):
    """`x IN (y, ...)` or `x NOT IN (y, ...)`."""

    operand: Expression
    choices: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Addend(Node):
    """A term of a sum after the first, with its sign."""

    sign: OneOf["+", "-"]
    term: Expression


@dataclass(frozen=True, slots=True)
class Sum(Node):
    """`x + y - ...`; `?x -1` is the same as `?x - 1`."""

    first: Expression
    rest: tuple[Addend, ...]


@dataclass(frozen=True, slots=True)
class Factor(Node):
    """A term of a product after the first, with its operator."""

    operator: OneOf["*", "/"]
    term: Expression


@dataclass(frozen=True, slots=True)
class Product(Node):
    """`x * y / ...`."""

    first: Expression
    rest: tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`!x`, `+x` or `-x`."""

    operator: OneOf["!", "+", "-"]
    operand: Expression


@dataclass(frozen=True, slots=True)
class BuiltInCall(Node):
    """A call of a SPARQL built-in function; the name is in capitals."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A call of a function by its IRI; with DISTINCT, of a user-defined aggregate."""

    function: Iri
    arguments: tuple[Expression, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class NamedCall(Node):
    """A call of a registered function by its bare name: `F(?a, ?b)` (AcquaTop, Listing 1)."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """`COUNT(DISTINCT ?x)` and the other built-in aggregates; `argument` is `None` for `*`."""

    function: AggregateName
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class Exists(Node):
    """`EXISTS { ... }` or `NOT EXISTS { ... }`."""

    group: GroupPattern
    negated: bool = False


Expression = (
    Var | Iri | Literal | Or | And | Comparison | In | Sum | Product | Unary
    | BuiltInCall | FunctionCall | NamedCall | Aggregate | Exists
)  # fmt: skip
