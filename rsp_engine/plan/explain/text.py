"""The explanation of a plan as text and as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rsp_engine.evaluators.column_join import ColumnJoinConfig
from rsp_engine.evaluators.per_pane import PerPaneConfig
from rsp_engine.evaluators.service.config import ServiceConfig
from rsp_engine.evaluators.service.shared_services import BudgetRules
from rsp_engine.evaluators.sparql import GeneralConfig
from rsp_engine.grammar import tree
from rsp_engine.grammar.write import WritePatterns
from rsp_engine.model.quantities import format_duration
from rsp_engine.model.windows import TimeFrame
from rsp_engine.monitor.run_monitor import QueryInfo
from rsp_engine.plan.equal_queries import EqualQueries
from rsp_engine.plan.explain.ranking import explain_order, explain_ranking
from rsp_engine.plan.explain.services import (
    services_as_data,
    services_as_text,
    shared_clauses,
)
from rsp_engine.plan.explain.sharing import (
    SharedMatching,
    matching_as_data,
    matching_as_text,
)
from rsp_engine.plan.explain.spark import work_on_spark
from rsp_engine.plan.logical import algebra as logical
from rsp_engine.plan.logical.algebra import inputs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rsp_engine.evaluators.physical_plan import WindowScan
    from rsp_engine.plan.explain.services import SharedClause
    from rsp_engine.plan.logical.algebra import Logical
    from rsp_engine.plan.planner import QueryPlan

__all__ = [
    "NodeWriter",
    "explain",
    "explain_all",
    "explain_all_json",
    "explain_json",
    "operator_of",
    "query_info",
    "r2s_text",
    "window_text",
]


Matching = Mapping[str, Sequence[SharedMatching]]
"""What queries share where streams are read, by their names."""


def explain_all(
    plans: Sequence[QueryPlan],
    *,
    why_not: bool = False,
    rules: BudgetRules | None = None,
    matching: Matching = MappingProxyType({}),
) -> str:
    """Return the explanation of each query of a run as text, and what they share."""
    shared = _shared(plans, rules)
    texts = (
        explain(
            p,
            why_not=why_not,
            equal=e,
            shared=shared[p.physical.name],
            matching=matching.get(p.physical.name, ()),
        )
        for p, e in zip(plans, _firsts(plans), strict=True)
    )
    return "\n".join(texts)


def explain_all_json(
    plans: Sequence[QueryPlan],
    *,
    why_not: bool = False,
    rules: BudgetRules | None = None,
    matching: Matching = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return the explanation of each query of a run as JSON data."""
    shared = _shared(plans, rules)
    return [
        {
            **explain_json(plan, why_not=why_not, shared=shared[plan.physical.name]),
            **({} if equal is None else {"equals": equal}),
            **({"shares": matching_as_data(alike)} if alike else {}),
        }
        for plan, equal in zip(plans, _firsts(plans), strict=True)
        for alike in (matching.get(plan.physical.name, ()),)
    ]


def _shared(
    plans: Sequence[QueryPlan], rules: BudgetRules | None
) -> Mapping[str, Sequence[SharedClause | None]]:
    return shared_clauses([plan.physical for plan in plans], rules or BudgetRules())


def _firsts(plans: Sequence[QueryPlan]) -> Iterator[str | None]:
    """Yield the name of the earlier query that is evaluated for each one; None if there is none."""
    queries = EqualQueries([plan.physical for plan in plans])
    for name in (plan.physical.name for plan in plans):
        first = queries.first_of(name)
        yield None if first == name else first


def explain(
    plan: QueryPlan,
    *,
    why_not: bool = False,
    equal: str | None = None,
    shared: Sequence[SharedClause | None] = (),
    matching: Sequence[SharedMatching] = (),
) -> str:
    """Return the text of the logical and the physical plan, with the reasons for the choice.

    With `why_not`, also with the reasons against the shapes that were tried before. `equal` is the
    name of an equal query that is evaluated for this one, `shared` is what its clauses share, and
    `matching` what it shares where streams are read.
    """
    same = [] if equal is None else [f"equal to {equal}, which is evaluated for both"]
    return "\n".join(
        [
            f"query {plan.physical.name}",
            *same,
            "",
            "Logical plan",
            *_tree(plan.logical, NodeWriter(plan.query.prefixes)),
            "",
            "Physical plan",
            *(f"  {line}" for line in _physical(plan, shared)),
            *(f"  {line}" for line in matching_as_text(matching)),
            "",
            *(_refusals(plan) if why_not else ()),
        ]
    )


def _refusals(plan: QueryPlan) -> Iterator[str]:
    yield "Why not"
    for shape, reason, at in plan.refusals:
        yield f"  {shape:11} {reason} (line {at.line}, column {at.column})"
    yield ""


def explain_json(
    plan: QueryPlan, *, why_not: bool = False, shared: Sequence[SharedClause | None] = ()
) -> dict[str, Any]:
    """Return the explanation of a plan as JSON data; `why_not` and `shared` as in `explain`."""
    physical = plan.physical
    refusals = [
        {"shape": shape, "reason": reason, "line": at.line, "column": at.column}
        for shape, reason, at in plan.refusals
    ]
    return {
        "query": physical.name,
        "logical": _as_data(plan.logical, NodeWriter(plan.query.prefixes)),
        "physical": {
            "operator": operator_of(plan)[0],
            "why": physical.why,
            "evaluated_by": _evaluated_by(plan),
            "sparql": physical.operator.query.sparql,
            "windows": [
                {
                    "window": s.window,
                    "stream": s.stream,
                    "size": window_text(s),
                    **({"match": "element"} if s.blocks else {}),
                }
                for s in physical.scans
            ],
            "graphs": [{"name": g.name, "file": str(g.path)} for g in physical.graphs],
            "r2s": physical.r2s,
            "report": physical.report,
            "bounds": physical.bounds,
            "feeds": physical.feeds,
            "on_spark": work_on_spark(physical)._asdict(),
            **_ranking_as_data(plan),
            **({"order": order} if (order := explain_order(physical.operator)) is not None else {}),
            **({"services": services_as_data(physical, shared)} if physical.services else {}),
        },
        **({"why_not": refusals} if why_not else {}),
    }


def _physical(plan: QueryPlan, shared: Sequence[SharedClause | None]) -> Iterator[str]:
    physical = plan.physical
    for scan in physical.scans:
        yield f"window   <{scan.window}> on stream <{scan.stream}>: {window_text(scan)}"
        if scan.blocks:
            yield f"match    <{scan.window}> element by element: no solution spans two elements"
    for graph in physical.graphs:
        name = "the default graph" if graph.name is None else f"graph <{graph.name}>"
        yield f"static   {name}: {graph.path}, read once"
    what = {"nonempty": "that are not empty", "every": "from the first to the last non-empty one"}
    yield f"report   when a window closes; windows {what[physical.report]}"
    yield f"operator {', '.join(operator_of(plan))}"
    yield f"why      {physical.why}"
    if (ranked := explain_ranking(physical)) is not None:
        yield from (f"{label:8} {fact}" for label, fact in ranked.facts.items())
    if (order := explain_order(physical.operator)) is not None:
        yield f"order    {order}"
    if ranked is not None:
        yield "means    this SPARQL query, with windows and services as graphs:"
    query = physical.operator.query
    yield from (f"         {line}" for line in query.sparql.splitlines())
    if query.template is not None:
        yield "then     the template is instantiated once per solution"
    if not query.is_ordered and query.form == "SELECT":
        yield f"then     rows are sorted by their terms{_cut(*query.cut)}"
    yield from services_as_text(physical, shared)
    work = work_on_spark(physical)
    yield f"on Spark executors {work.executors}"
    yield f"         the driver {work.driver}"
    yield f"answers  {r2s_text(physical.r2s)}"
    if physical.feeds is not None:
        yield f"feeds    stream <{physical.feeds}>"


def _cut(offset: int, limit: int | None) -> str:
    words = [f"OFFSET {offset}"] * (offset > 0) + ([] if limit is None else [f"LIMIT {limit}"])
    return f", then cut by {' '.join(words)}" if words else ""


def operator_of(plan: QueryPlan) -> tuple[str, str]:
    """Return the name of the operator, and what it keeps or what evaluates it."""
    if (ranked := explain_ranking(plan.physical)) is not None:
        return ranked.operator, ranked.keeps
    match plan.physical.operator:
        case PerPaneConfig():
            return "pane by pane", "evaluated by Oxigraph"
        case ColumnJoinConfig(join=join):
            is_alone = join.is_complete
            return "join on columns", "without Oxigraph" if is_alone else "finished by Oxigraph"
        case GeneralConfig() | ServiceConfig():
            return "general path", "evaluated by Oxigraph"
        case other:
            return other.tag, "evaluated by its own operator"


def _evaluated_by(plan: QueryPlan) -> str:
    match plan.physical.operator:
        case ColumnJoinConfig(join=join) if join.is_complete:
            return operator_of(plan)[0]
        case _:
            is_ranked = explain_ranking(plan.physical) is not None
            return operator_of(plan)[0] if is_ranked else "Oxigraph"


def _ranking_as_data(plan: QueryPlan) -> dict[str, Any]:
    ranked = explain_ranking(plan.physical)
    return {} if ranked is None else {"ranking": {"keeps": ranked.keeps, **ranked.facts}}


def window_text(scan: WindowScan) -> str:
    """Return the size, the step and the bounds of a window."""
    frame = scan.frame
    if isinstance(frame, TimeFrame):
        left, right = frame.bounds
        size = f"RANGE {format_duration(frame.range)} STEP {format_duration(frame.step)}"
        return f"{size}, {left}open, close{right} from {frame.t0}"
    return f"{frame.unit} {frame.size} STEP {frame.step}"


def r2s_text(r2s: str) -> str:
    """Return a description of an R2S operator: what it outputs at each evaluation."""
    return {
        "RSTREAM": "RSTREAM: the whole answer",
        "ISTREAM": "ISTREAM: the part of the answer that the previous answer lacked",
        "DSTREAM": "DSTREAM: the part of the previous answer that this answer lacks",
    }[r2s]


def _tree(
    node: Logical, describe: NodeWriter, lead: str = "  ", below: str = "  "
) -> Iterator[str]:
    first, *details = describe.lines(node)
    inputs = inputs_of(node)
    yield f"{lead}{first}"
    yield from (f"{below}{'│' if inputs else ' '}    {line}" for line in details)
    for place, child in enumerate(inputs):
        last = place == len(inputs) - 1
        yield from _tree(
            child, describe, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def _as_data(node: Logical, describe: NodeWriter) -> dict[str, Any]:
    name, *details = describe.lines(node)
    operator, _, detail = name.partition(" ")
    data: dict[str, Any] = {"operator": operator}
    if text := "\n".join(filter(None, [detail, *details])):
        data["detail"] = text
    if inputs := inputs_of(node):
        data["inputs"] = [_as_data(child, describe) for child in inputs]
    return data


class NodeWriter(WritePatterns):
    """Writes a node of a logical plan as one or more lines."""

    def lines(self, node: Logical) -> list[str]:
        """Return the name of a node with its arguments, and a line for each of its triples."""
        name = type(node).__name__
        match node:
            case logical.Bgp(triples):
                return [f"{name} {'(empty)' * (not triples)}".rstrip(), *map(self._triple, triples)]
            case logical.Construct(template, _):
                return [name, *map(self._triple, template)]
            case logical.LeftJoin(_, _, conditions) | logical.Filter(conditions, _):
                return [" ".join([name, *map(self._bracketed, conditions)])]
            case logical.Extend(_, variable, expression):
                return [f"{name} {self.term(variable)} := {self.expression(expression)}"]
            case logical.Values(data):
                return [f"{name} {self.values(data).removeprefix('VALUES ')}"]
            case logical.Graph(term, _) | logical.Window(term, _):
                return [f"{name} {self.term(term)}"]
            case logical.Service(term, _, silent):
                return [f"{name} {'SILENT ' * silent}{self.term(term)}"]
            case logical.Group(keys, _):
                return [" ".join([name, *map(self._key, keys)])]
            case logical.OrderBy(conditions, _):
                return [" ".join([name, *map(self._order, conditions)])]
            case logical.Project(variables, _):
                return [" ".join([name, *(f"?{v}" for v in variables)])]
            case logical.Slice(_, offset, limit):
                return [f"{name} offset {offset} limit {'none' if limit is None else limit}"]
            case logical.Stream(register, _):
                kind = "RSTREAM" if register is None else register.r2s
                return [f"{name} {kind}"]
            case _:
                return [name]

    def _triple(self, triple: tuple[Any, Any, Any]) -> str:
        subject, verb, value = triple
        return f"{self._plain(subject)} {self.verb(verb)} {self._plain(value)}"

    def _plain(self, node: tree.Var | tree.Iri | tree.Literal | tree.BlankNode) -> str:
        if isinstance(node, tree.BlankNode) and node.label.startswith("."):
            return f"[{node.label[1:]}]"
        return self.term(node)

    def _bracketed(self, expression: tree.Expression) -> str:
        return f"({' '.join(self.expression(expression).split())})"

    def _key(self, key: tree.GroupKey) -> str:
        text = self.expression(key.expression)
        return text if key.variable is None else f"({text} AS {self.term(key.variable)})"

    def _order(self, condition: tree.OrderCondition) -> str:
        word = "DESC" if condition.descending else "ASC"
        return f"{word}({self.expression(condition.expression)})"

    def sub_select(self, query: tree.SubSelect) -> str:
        return f"SELECT ... WHERE {self.group(query.where)}"


def query_info(plan: QueryPlan) -> QueryInfo:
    """Return the facts about a query that a run monitor shows."""
    physical = plan.physical
    bounded = [each.options.most_keys for each in physical.services if each.policy.is_bounded]
    return QueryInfo(
        physical.name,
        physical.operator.query.form,
        operator_of(plan)[0],
        physical.r2s,
        plan.query.prefixes,
        {scan.window: scan.stream for scan in physical.scans},
        {each.pattern.service: each.policy.name for each in physical.services},
        bounded[0] if bounded else None,
    )
