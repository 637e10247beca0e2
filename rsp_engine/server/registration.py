"""Registrations: a query with its bindings, its options and its start, as a request states them."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from rsp_engine.engine import Engine
from rsp_engine.errors import RspError
from rsp_engine.grammar import checked
from rsp_engine.grammar.iris import full_iri
from rsp_engine.grammar.tree import FromWindow
from rsp_engine.io.sources.spec import nearest
from rsp_engine.io.sources.times import from_text
from rsp_engine.model.option import declared
from rsp_engine.options import RankingOptions, ServiceOptions, WindowOptions
from rsp_engine.policies.policy_file import is_policy_file
from rsp_engine.policies.registry import policy_named
from rsp_engine.server.groups.bindings import NO_FOLDER, Bindings, set_up
from rsp_engine.server.refusals import ForbiddenError, MalformedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rsp_engine.drivers.registered_query import Query
    from rsp_engine.evaluators.physical_plan import PhysicalPlan
    from rsp_engine.server.access import Access

__all__ = [
    "QueryStart",
    "Registration",
    "are_equal",
    "checked_name",
    "fields_of",
    "plan_query",
    "read_bindings",
    "read_registration",
]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
QueryStart = Literal["now", "earliest"] | int
_OPTIONS = {
    known.name: known
    for kind in (WindowOptions, RankingOptions, ServiceOptions)
    for known in declared(kind)
}


@dataclass(frozen=True, slots=True)
class Registration:
    """A query as it was registered."""

    name: str
    text: str
    start: QueryStart = "now"
    group: str | None = None
    bindings: Bindings = field(default_factory=Bindings)

    def as_data(self) -> dict[str, Any]:
        """Return the registration as plain data."""
        return asdict(self)

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> Registration:
        """Return the registration of plain data that `as_data` returned."""
        return cls(**{**data, "bindings": Bindings(**data["bindings"])})


def checked_name(value: object, what: str) -> str:
    """Return a name; refuse what is none."""
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    hint = "a name begins with a letter; letters, digits, _ . and - follow, 64 characters in all"
    raise MalformedError(f"{what} cannot be {str(value)[:80]!r}", hint)


def fields_of(body: object, known: Sequence[str], needed: Sequence[str]) -> dict[str, Any]:
    """Return the members of a JSON object; refuse members that are not known, or missing."""
    if not isinstance(body, dict):
        raise MalformedError("the body is not a JSON object", f"its members: {', '.join(known)}")
    for name in body:
        if name not in known:
            hint = nearest(name, known) or f"its members: {', '.join(known)}"
            raise MalformedError(f"the body has a member {name[:80]!r}", hint)
    for name in needed:
        if body.get(name) is None:
            raise MalformedError(f"the body has no member {name!r}")
    return {name: value for name, value in body.items() if value is not None}


BINDINGS = tuple(each.name for each in fields(Bindings))
_REGISTRATION = ("text", "name", "start", "group", *BINDINGS)


def read_bindings(body: Mapping[str, Any], access: Access) -> Bindings:
    """Return the bindings of a request; refuse what is malformed or not allowed."""
    services = _texts(body, "services")
    for url in services.values():
        access.check_url(url)
    graphs = {iri: str(access.file(path)) for iri, path in _texts(body, "graphs").items()}
    functions = body.get("functions", [])
    if not isinstance(functions, list) or not all(isinstance(each, str) for each in functions):
        raise MalformedError("functions must be a list of texts", "F(?a, ?b) = ?a + ?b")
    return Bindings(
        _options(body.get("options", {})),
        services,
        _texts(body, "modified"),
        graphs,
        tuple(functions),
        _ranges(body.get("ranges", {})),
    )


def read_registration(body: object, access: Access) -> tuple[Registration, Query]:
    """Return the registration that a request states, and the plan of its query."""
    data = fields_of(body, _REGISTRATION, ["text"])
    text = _text(data["text"])
    bindings = read_bindings(data, access)
    query = plan_query(text, bindings)
    name = data.get("name", _local_name(query.physical.name))
    if "name" not in data and query.query.register is None:
        raise MalformedError("the query has no name", "give it one, or write REGISTER in its text")
    group = None if "group" not in data else checked_name(data["group"], "the name of a group")
    return (
        Registration(
            checked_name(name, "the name of a query"),
            text,
            _start(data.get("start", "now")),
            group,
            bindings,
        ),
        query,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise MalformedError("text must be the text of a query")
    return value


def _local_name(iri: str) -> str:
    return re.split(r"[/#:]", iri)[-1]


def _start(value: object) -> QueryStart:
    match value:
        case "now" | "earliest":
            return cast("QueryStart", value)
        case bool():
            pass
        case int():
            return value
        case str():
            try:
                return from_text(value)
            except ValueError:
                pass
    hint = "it is now, earliest, or a time: milliseconds since 1970, or 2024-03-01T09:00:02Z"
    raise MalformedError(f"start cannot be {str(value)[:80]!r}", hint)


def _texts(body: Mapping[str, Any], name: str) -> dict[str, str]:
    value = body.get(name, {})
    if not isinstance(value, dict) or not all(isinstance(v, str) and v for v in value.values()):
        raise MalformedError(f"{name} must be an object whose values are texts")
    return {_iri(key): text for key, text in value.items()}


def _iri(text: str) -> str:
    return full_iri(text, {}) or text


def _ranges(value: object) -> dict[str, Sequence[float]]:
    if not isinstance(value, dict):
        raise MalformedError("ranges must be an object")
    for pair in value.values():
        is_pair = isinstance(pair, list) and len(pair) == 2
        if not is_pair or not all(type(each) in (int, float) for each in pair):
            raise MalformedError("a range is a list of two numbers", "[0, 250]")
    return {_iri(iri): tuple(pair) for iri, pair in value.items()}


def _options(value: object) -> dict[str, Any]:
    """Return options; refuse unknown ones, wrong values, and policies that are Python."""
    if not isinstance(value, dict):
        raise MalformedError("options must be an object")
    for name, given in value.items():
        if name not in _OPTIONS:
            hint = nearest(name, _OPTIONS) or f"the options are {', '.join(_OPTIONS)}"
            raise MalformedError(f"there is no option {name[:80]}", hint)
        _check_type(name, given)
    policy = value.get("policy")
    if policy is not None:
        if is_policy_file(policy.partition("+")[0]):
            raise MalformedError("a policy cannot be a file of Python", "name a built-in policy")
        try:
            policy_named(policy)
        except ValueError as error:
            raise MalformedError(str(error), "`rsp policies` lists them") from None
    parts = [
        {name: given for name, given in value.items() if name in {o.name for o in declared(kind)}}
        for kind in (WindowOptions, RankingOptions, ServiceOptions)
    ]
    try:
        WindowOptions(**parts[0]), RankingOptions(**parts[1]), ServiceOptions(**parts[2])
    except (ValueError, TypeError, OverflowError) as error:
        raise MalformedError(f"options: {error}") from None
    return value


def _check_type(name: str, value: object) -> None:
    """Refuse a value whose JSON type no value of the option has."""
    known = _OPTIONS[name]
    text = str(known.type)
    is_list = "Sequence" in text
    if is_list:
        is_good = isinstance(value, list) and all(isinstance(each, str) for each in value)
    elif known.type is bool:
        is_good = isinstance(value, bool)
    elif isinstance(value, bool):
        is_good = False
    elif isinstance(value, str):
        is_good = "str" in text or "Literal" in text
    elif isinstance(value, int):
        is_good = "int" in text
    else:
        is_good = value is None or (isinstance(value, float) and "float" in text)
    if not is_good:
        raise MalformedError(f"the option {name} cannot be {str(value)[:80]!r}", known.help)


def plan_query(text: str, bindings: Bindings) -> Query:
    """Return the plan of a query; raise `RspError` if it is wrong, or reads a file by itself."""
    query, _ = checked(text, "query")
    for clause in query.form.dataset:
        if not isinstance(clause, FromWindow):
            _check_graph(clause.graph.value, bindings)
    engine = Engine(**bindings.options)
    set_up(engine, bindings, query.prefixes)
    planned = engine.register(text, "query", NO_FOLDER)
    engine.check(sources=False)
    return planned


def _check_graph(iri: str, bindings: Bindings) -> None:
    if iri not in bindings.graphs and iri.removeprefix("file:") not in bindings.graphs:
        hint = 'bind it to an allowed file: "graphs": {"' + iri + '": PATH}'
        raise ForbiddenError(f"the graph <{iri}> has no file", hint)


def are_equal(one: PhysicalPlan, other: PhysicalPlan) -> bool:
    """Return whether two plans differ in their names only; bindings are left out."""
    return _nameless(one) == _nameless(other)


def _nameless(plan: PhysicalPlan) -> PhysicalPlan:
    services = tuple(replace(service, connect=_no_connection) for service in plan.services)
    return replace(plan, name=plan.feeds or "", services=services)


def _no_connection(_pattern: object) -> Any:  # noqa: ANN401 - it is never called
    raise RspError("a plan that is only compared has no connection")
