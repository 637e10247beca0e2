"""Options are declared once: keywords, flags, keys, variables and help are derived from there."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

import pytest
import typer

from rsp_engine import Engine
from rsp_engine.cli import app
from rsp_engine.cli.flags import RunFlags
from rsp_engine.errors import BindingError
from rsp_engine.model.option import Options, declared, described, option
from rsp_engine.options import EngineOptions, ServiceOptions, WindowOptions

GROUPS = list(get_type_hints(RunFlags).values())
DECLARED = [known for group in GROUPS for known in declared(group)]
COMMANDS: Any = typer.main.get_command(app)
EX = "http://example.org/"
QUERY = f"""PREFIX : <{EX}> PREFIX ex: <{EX}> REGISTER RSTREAM :q AS SELECT ?s ?v
FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s] WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"""
SERVED = f"""PREFIX : <{EX}> SELECT ?s ?f FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]
WHERE {{ WINDOW :w {{ ?s :p ?v }} SERVICE :users {{ ?s :f ?f }} }}"""
PREFIXES = {"ex": EX}


@pytest.mark.parametrize("known", DECLARED, ids=lambda known: known.name)
def test_an_option_says_in_a_sentence_what_it_sets_and_what_holds_without_it(known):
    assert known.help.endswith(".")
    assert known.help[0].isupper() or known.name == "output_format"
    assert (known.default is None) == (known.unset is not None)


def test_the_keywords_of_an_engine_are_the_fields_of_its_options():
    keywords = inspect.signature(Engine).parameters
    expected = {each.name: each.default for each in fields(EngineOptions)}
    assert list(keywords) == list(expected)
    for name, default in expected.items():
        assert keywords[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert keywords[name].default == default
    assert described(EngineOptions) == Engine.__init__.__doc__


def test_each_option_has_the_same_flag_in_run_and_explain():
    run, explain = (COMMANDS.commands[name].params for name in ("run", "explain"))
    assert [param.opts[0] for param in run[2:]] == [known.flag for known in DECLARED]
    assert {opt for p in run for opt in p.opts} <= {opt for p in explain for opt in p.opts}
    for param, known in zip(run[2:], DECLARED, strict=True):
        text = (
            known.default_text if known.is_text and known.default is not None else known.default
        )  # durations and budgets are texts
        assert param.default == (None if known.default == () else text)
        assert param.help.startswith(known.help)


def test_a_new_option_is_a_keyword_a_flag_a_key_and_a_variable():
    @dataclass(frozen=True, kw_only=True)
    class More(Options):
        top_speed: float = option(1.5, "How fast it may go.", minimum=0)

    [known] = declared(More)
    assert (known.name, known.flag, known.key, known.variable) == (
        "top_speed", "--top-speed", "top-speed", "RSP_TOP_SPEED",
    )  # fmt: skip
    assert described(More) == "Args:\n    top_speed: How fast it may go. Default 1.5."
    with pytest.raises(ValueError, match=r"top_speed=-1: it must not be negative"):
        More(top_speed=-1)


def test_durations_are_texts_or_milliseconds():
    assert WindowOptions(max_delay="5s") == WindowOptions(max_delay=5_000)
    remote = ServiceOptions(deadline="300ms", change_interval="PT1M")
    assert (remote.deadline, remote.change_interval) == (300, 60_000)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_delay": "soon"}, "max_delay='soon': it is not of the form PT9M, 9m or 540000"),
        ({"max_delay": -1}, "max_delay=-1: it must not be negative"),
        ({"change_interval": 0}, "change_interval=0: it must be at least 1"),
        ({"report": "evry"}, "report='evry': it must be one of nonempty, every"),
        ({"split_bytes": 0}, "split_bytes=0: it must be at least 1"),
        ({"max_delay": 5.5}, "max_delay=5.5: it must be a whole number"),
        ({"deadline": True}, "deadline=True: it must be a whole number"),
        ({"budget": 2.5}, "budget=2.5: it must be a whole number"),
        ({"n": "ten"}, "n='ten': it must be a whole number"),
        ({"speed": "fast"}, "speed='fast': it must be a number"),
        ({"speed": float("nan")}, "speed=nan: it must be a number"),
        ({"policy": 3}, "policy=3: it must be a text"),
        ({"checkpoint": 3}, "checkpoint=3: it must be a text"),
        ({"oracle": "no"}, "oracle='no': it must be true or false"),
        ({"budget": -1}, "the budget must not be negative"),
        ({"n": -1}, "n must not be negative"),
        ({"max_requests": -1}, "max_requests must not be negative"),
        ({"capacity": 0}, "a replica must have room for at least 1 key"),
    ],
)
def test_a_value_out_of_range_is_refused_when_the_engine_is_made(options, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        Engine(**options)


def test_a_type_checker_and_the_engine_refuse_what_is_no_option():
    with pytest.raises(TypeError, match=r"no option budgte; did you mean budget\?"):
        Engine(budgte=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="runner='sprak'"):
        Engine(runner="sprak")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Engine("(]")  # type: ignore[call-arg]


@pytest.mark.parametrize("name", [":s", "ex:s", f"{EX}s", f"<{EX}s>"])
def test_a_stream_has_the_prefixes_of_the_registered_queries(name):
    engine = Engine()
    engine.register(QUERY)
    engine.bind(name, [(1_000, f"<{EX}a> <{EX}p> 1 .")])
    assert len(list(engine.run())) == 1


def test_what_is_bound_before_a_query_has_the_prefixes_of_the_engine():
    engine = Engine(prefixes=PREFIXES)
    engine.service("ex:users", "http://localhost:1/", modified="ex:modified")
    engine.changes("ex:users", [])
    engine.range("ex:s", 0, 9)
    query = engine.register(SERVED)
    [service] = query.physical.services
    assert service.pattern.service == f"{EX}users"
    assert (service.is_pushed, service.modified) == (True, f"{EX}modified")


def test_a_graph_has_the_prefixes_of_the_engine(tmp_path):
    (tmp_path / "g.ttl").write_text("")
    engine = Engine(prefixes=PREFIXES)
    engine.graph("ex:g", tmp_path / "g.ttl")
    text = QUERY.replace("FROM NAMED", f"FROM <{EX}g> FROM NAMED", 1)
    assert [graph.name for graph in engine.register(text).physical.graphs]


def test_a_definition_has_the_prefixes_of_the_engine():
    engine = Engine(prefixes=PREFIXES)
    engine.define("ex:twice(?x) = 2 * ?x")
    ranked = QUERY + " ORDER BY DESC(ex:twice(?v)) LIMIT 1"
    assert "2 * ?v" in engine.register(ranked).explain()


@pytest.mark.parametrize("method", ["bind", "changes", "service", "graph", "range"])
def test_a_prefix_that_nobody_declares_is_refused_with_what_to_do(method):
    engine = Engine(prefixes=PREFIXES)
    arguments = {"range": (0, 1), "service": ("http://localhost:1/",)}.get(method, ("x.nq",))
    with pytest.raises(BindingError, match="the prefix xe: of xe:s is not known") as refused:
        getattr(engine, method)("xe:s", *arguments)
    assert refused.value.hint is not None
    assert 'Engine(prefixes={"xe": "..."})' in refused.value.hint
