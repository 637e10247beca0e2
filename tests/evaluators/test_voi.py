"""AT-VOI and the change signal in the engine: limits, fallbacks, state, and a real server."""

from __future__ import annotations

import json
from typing import Any

import pyoxigraph as ox
import pytest
from typer.testing import CliRunner

from rsp_engine.cli import app
from rsp_engine.engine import Engine
from rsp_engine.errors import BindingError
from rsp_engine.evaluators.step import Step
from rsp_engine.grammar import check
from rsp_engine.io.sources.memory import MemorySource
from rsp_engine.options import ServiceOptions
from rsp_engine.plan.options import QueryOptions
from rsp_engine.plan.planner import plan
from rsp_engine.policies.registry import POLICIES
from rsp_engine.replica.endpoints.endpoint import FetchResult, Limits
from rsp_engine.replica.endpoints.in_process import InProcessEndpoint
from tests.replica.servers import OxigraphServer

EX = "http://example.org/"
MODIFIED = "http://purl.org/dc/terms/modified"
HEAD = f"PREFIX : <{EX}> PREFIX dct: <http://purl.org/dc/terms/> REGISTER RSTREAM :best AS "
QUERY = f"""{HEAD} SELECT ?user (?n + ?f AS ?score)
FROM NAMED WINDOW :w ON STREAM :s [RANGE 9s STEP 3s]
WHERE {{ WINDOW :w {{ ?user :mentions ?n }} SERVICE :BKG {{ ?user :followers ?f }} }}
ORDER BY DESC(?score) LIMIT 3"""
GROUPS = f"""{HEAD} SELECT ?user (COUNT(*) + ?f AS ?score)
FROM NAMED WINDOW :w ON STREAM :s [RANGE 9s STEP 3s]
WHERE {{ WINDOW :w {{ ?user :mentions ?n }} SERVICE :BKG {{ ?user :followers ?f }} }}
GROUP BY ?user ?f ORDER BY DESC(?score) LIMIT 3"""
USERS = [f"u{number}" for number in range(12)]


def stream(seconds: int = 30) -> list[tuple[int, str]]:
    return [
        (1000 * at + 100 * place, f"<{EX}{USERS[(5 * at + 3 * place) % 12]}> <{EX}mentions> {at} .")
        for at in range(seconds)
        for place in range(4)
    ]


class Changing:
    """A remote side in which some values change at every instant; it records the calls."""

    def __init__(self, every: int = 3) -> None:
        self.every = every
        self.asked: list[tuple[str, int, Limits]] = []

    def value(self, user: str, now: int) -> int:
        number = USERS.index(user)
        return (7 * number + (now // 1000 + number) // self.every * 5) % 23

    def stamp(self, user: str, now: int) -> int:
        return (now // 1000 + USERS.index(user)) // self.every

    def of(self, pattern: Any) -> Told:
        return Told(self, pattern)


class Told:
    def __init__(self, source: Changing, pattern: Any) -> None:
        self._source = source
        [self._name] = pattern.variables

    def fetch(self, keys: Any, limits: Limits, now: int) -> FetchResult:
        self._source.asked.append((self._name, len(keys), limits))
        return FetchResult({key: self._told(key, now) for key in keys}, 1)

    def snapshot(self, _limits: Limits, now: int) -> FetchResult:
        keys = [(ox.NamedNode(EX + user),) for user in USERS]
        return FetchResult({key: self._told(key, now) for key in keys}, 1)

    def _told(self, key: Any, now: int) -> Any:
        asked = self._source.value if self._name == "f" else self._source.stamp
        return ({self._name: ox.Literal(asked(key[0].value.removeprefix(EX), now))},)

    def close(self) -> None:
        pass


def run(source: Changing, *, signal: bool = False, text: str = QUERY, **options: Any) -> list[Any]:
    engine = Engine(n=9, **options)
    engine.service(f"{EX}BKG", source.of, modified=MODIFIED if signal else None)
    engine.register(text)
    engine.bind(f"{EX}s", stream())
    return list(engine.run())


# Within the budget and the limits.


@pytest.mark.parametrize("policy", ["AT-VOI", "WSJ-VOI"])
@pytest.mark.parametrize("text", [QUERY, GROUPS], ids=["arrivals", "groups"])
def test_half_of_the_budget_comes_first_and_the_rest_after_a_look(policy, text):
    source = Changing()
    answers = run(source, text=text, policy=policy, budget=5)
    assert [a.stats["budget_spent"] for a in answers] == [5] * len(answers)
    assert [a.stats["requests"] for a in answers] == [2] * len(answers)
    assert [count for _, count, _ in source.asked] == [3, 2] * len(answers)


@pytest.mark.parametrize("text", [QUERY, GROUPS], ids=["arrivals", "groups"])
def test_who_may_fetch_everything_is_right(text):
    best = [a.content for a in run(Changing(), text=text, policy="EXACT")]
    for policy in ("AT-VOI", "WSJ-VOI", "AT-VOI+wp=4+answer=replica"):
        answers = run(Changing(), text=text, policy=policy, budget=12)
        assert [[r.bindings for r in a.content.rows] for a in answers] == [
            [r.bindings for r in content.rows] for content in best
        ]


@pytest.mark.parametrize("policy", ["AT-VOI", "AT-TSM"])
def test_with_one_request_there_is_one_fetch_and_no_signal(policy):
    source = Changing()
    answers = run(source, policy=policy, budget=5, signal=True, max_requests=1)
    assert {name for name, *_ in source.asked} == {"f"}
    assert [a.stats["requests"] for a in answers] == [1] * len(answers)
    assert [a.stats["budget_spent"] for a in answers] == [5] * len(answers)


def test_the_signal_is_asked_once_and_counts_as_a_request():
    source = Changing()
    answers = run(source, policy="AT-VOI", budget=4, signal=True, max_requests=2, deadline=9000)
    assert [name for name, *_ in source.asked] == ["modified", "f"] * len(answers)
    assert [a.stats["requests"] for a in answers] == [2] * len(answers)
    assert [limits.max_requests for _, _, limits in source.asked] == [2, 1] * len(answers)
    assert all(0 < (limits.deadline_ms or 0) <= 9000 for _, _, limits in source.asked)


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "WST"])
def test_every_policy_skips_what_is_told_to_be_unchanged(policy):
    """A third changes from one window to the next: who may fetch that many knows everything."""
    answers = run(Changing(9), policy=policy, budget=12, signal=True)
    assert all(a.stats["exact"] or policy.startswith("AT-") for a in answers)
    assert max(a.stats["budget_spent"] for a in answers[1:]) <= 6
    exact = run(Changing(9), policy="EXACT")
    assert [a.content.rows[0].bindings for a in answers] == [
        a.content.rows[0].bindings for a in exact
    ]
    assert {r.age for a in answers for r in a.content.rows} == {0}  # as good as fetched now


def test_who_fetches_nothing_asks_for_no_signal():
    source = Changing()
    run(source, policy="WST", signal=True)
    assert source.asked == []


def test_the_signal_serves_the_general_path_too():
    text = QUERY.replace("?user :mentions ?n", "?user :mentions ?n . ?user :mentions ?m")
    source = Changing(9)
    answers = run(source, text=text, policy="WSJ-LRU", budget=12, signal=True)
    assert all(a.stats["exact"] for a in answers)
    assert max(a.stats["budget_spent"] for a in answers[1:]) <= 6


# What it believes.


class Rising(Changing):
    """A remote side whose values rise by about one at every instant."""

    def value(self, user: str, now: int) -> int:
        number = USERS.index(user)
        return now // 1000 + number + (now // 1000 * 7 + number) % 2


@pytest.mark.parametrize("policy", ["AT-VOI", "WSJ-ECR"])
def test_stats_tell_the_model_of_change_and_how_sure_it_is(policy):
    before, after = (
        run(source, policy=policy, budget=6)[-1].stats["belief"]
        for source in (Changing(10_000), Rising())
    )
    assert before["changes"] == 0, "no value changes"
    assert before["models"]["redrawn"] == 1
    assert before["rates"][2] < 0.05
    assert after["changes"] > 40
    assert after["models"]["innovation"] > 0.6
    assert after["rates"][0] > 0.9
    assert sum(after["models"].values()) == pytest.approx(1, abs=0.002)
    assert "belief" not in run(Rising(), policy="AT-TSM")[-1].stats


# What cannot be foreseen.


def explained(text: str, policy: str = "AT-VOI", **options: Any) -> str:
    engine = Engine(policy=policy, **options)
    engine.service(f"{EX}BKG", Changing().of, modified=MODIFIED)
    engine.register(text)
    return engine.explain()


def test_explain_tells_the_policy_and_the_signal():
    told = explained(QUERY)
    assert "policy   AT-VOI: keys of the list that the answer depends on\n" in told
    assert f"signal   <{MODIFIED}> marks changed keys; unchanged keys are not fetched\n" in told
    assert (
        "learns   how often each key changes, and the model of change: redrawn, innovation" in told
    )
    assert "learns" not in explained(QUERY, "AT-TSM")
    assert "in place of" not in told
    assert "policy   WSJ-VOI+wp=4:" in explained(QUERY, "WSJ-VOI+wp=4")


@pytest.mark.parametrize(
    ("policy", "other"), [("AT-VOI", "AT-TSM: the top"), ("WSJ-VOI", "WSJ-LRU: keys of the window")]
)
@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        (QUERY.replace("?n + ?f", "?n * ?f"), {}, "?n * ?f may rise or fall with ?f"),
        (QUERY.replace("?n + ?f", "?n + 1"), {}, "the score uses no remote value"),
        (QUERY, {"arrivals": "all"}, "a key may have several objects"),
        (
            GROUPS.replace("COUNT(*)", "COUNT(?user)").replace(
                "GROUP BY ?user", "GROUP BY ?user ?n"
            ),
            {},
            "a key may have several objects",
        ),
    ],
)
def test_where_scores_cannot_be_foreseen_another_policy_elects_and_explain_names_it(
    policy, other, text, options, why
):
    told = explained(text, policy, **options)
    assert f"policy   {other}" in told
    assert f"         in place of {policy}: {why}" in told


@pytest.mark.parametrize("policy", ["AT-VOI", "WSJ-VOI"])
def test_with_several_remote_variables_another_policy_elects_and_explain_names_it(policy):
    text = QUERY.replace("?n + ?f", "?n + ?f + ?g").replace(
        ":followers ?f", ":followers ?f ; :g ?g"
    )
    told = explained(text, policy)
    assert "policy   WSJ-LRU: keys of the window" in told
    assert f"in place of {policy}: the general path has no score to predict" in told


def test_a_score_that_falls_with_the_remote_value_can_be_foreseen():
    text = QUERY.replace("?n + ?f", "?n - ?f")
    assert "policy   AT-VOI:" in explained(text)
    right = run(Changing(), text=text, policy="EXACT")
    found = run(Changing(), text=text, policy="AT-VOI", budget=12)
    assert [a.content.rows[0].bindings for a in found] == [
        a.content.rows[0].bindings for a in right
    ]


def test_parameters_that_cannot_be_are_refused():
    with pytest.raises(BindingError, match="AT-VOI has no parameter wq"):
        explained(QUERY, "AT-VOI+wq=4")


# The state.


def step_of(source: Changing) -> Step:
    options = QueryOptions(
        endpoints={f"{EX}BKG": source.of},
        modified={f"{EX}BKG": MODIFIED},
        services=ServiceOptions(policy="AT-VOI", budget=4, n=3),
    )
    return Step(plan(check(QUERY), QUERY, "<query>", options).physical)


def test_a_run_that_goes_on_from_its_state_gives_the_same_answers_and_states_to_the_byte():
    whole, cut = step_of(Changing()), step_of(Changing())
    answers: list[tuple[Any, ...]] = [(), ()]
    for element in MemorySource(stream()):
        for place, step in enumerate((whole, cut)):
            step.take(f"{EX}s", element.timestamp, element.triples, element.timestamp)  # type: ignore[union-attr]
            answers[place] += tuple(step.due(element.timestamp))  # type: ignore[union-attr]
        saved = json.dumps(whole.state())
        assert json.dumps(cut.state()) == saved
        cut = step_of(Changing())
        cut.restore(json.loads(saved))
    assert len(answers[0]) >= 6
    assert answers[0] == answers[1]
    learned = whole.state()
    assert '"marginal"' in json.dumps(learned)
    assert learned["services"]["0"]["stamps"]["size"] > 0


# With a real server, from the command line.


@pytest.mark.outside
@pytest.mark.parametrize("flags", [[], ["--modified", ":BKG=dct:modified"]], ids=["", "signal"])
def test_rsp_run_asks_a_real_server(tmp_path, flags):
    (tmp_path / "best.rspql").write_text(QUERY)
    lines = (json.dumps({"timestamp": at, "graph": text}) for at, text in stream())
    (tmp_path / "s.jsonl").write_text("\n".join(lines))
    source = Changing()
    with OxigraphServer() as server:
        data = " ".join(
            f"<{EX}{user}> <{EX}followers> {source.value(user, 0)} ; <{MODIFIED}> 1 ."
            for user in USERS
        )
        server.update(f"INSERT DATA {{ {data} }}")
        done = CliRunner().invoke(
            app,
            [
                *("run", str(tmp_path / "best.rspql"), "--stream", f":s={tmp_path / 's.jsonl'}"),
                *("--service", f":BKG={server.query_url}", "--runner", "local"),
                *("--policy", "AT-VOI+wp=4", "--budget", "4", "--oracle", *flags),
            ],
        )
    assert done.exit_code == 0, done.output
    answers = list(map(json.loads, done.stdout.splitlines()))
    assert len(answers) > 8
    spent = {answer["stats"]["budget_spent"] for answer in answers}
    assert spent == ({0} if flags else {4})  # nothing changes, so with a signal nothing is fetched
    assert {answer["stats"]["requests"] for answer in answers} == ({1} if flags else {2})
    assert {answer["stats"]["ndcg"] for answer in answers} == {1.0}
    assert {answer["stats"]["exact"] for answer in answers[3:]} == {bool(flags)}


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        (":other=dct:modified", "that service is not bound"),
        (":BKG", "is not of the form IRI=VALUE"),
        (":BKG=not an iri", "not an iri is not an IRI"),
    ],
)
@pytest.mark.parametrize("word", ["run", "explain"])
def test_a_signal_that_is_bound_wrongly_is_refused(tmp_path, word, flag, message):
    (tmp_path / "best.rspql").write_text(QUERY)
    (tmp_path / "s.jsonl").write_text("")
    where = [str(tmp_path / "best.rspql"), "--service", ":BKG=http://localhost:1/"]
    where += (
        ["--stream", f":s={tmp_path / 's.jsonl'}", "--runner", "local"] if word == "run" else []
    )
    done = CliRunner().invoke(app, [word, *where, "--modified", flag])
    assert done.exit_code == 2, done.output
    assert message in done.stderr


def test_changes_of_a_store_are_found_by_their_stamps():
    """Of twelve keys, the one that changes is the one that is fetched."""
    store = ox.Store()

    def put(user: str, followers: int, stamp: int) -> None:
        for verb, value in ((f"{EX}followers", followers), (MODIFIED, stamp)):
            for quad in list(
                store.quads_for_pattern(ox.NamedNode(EX + user), ox.NamedNode(verb), None)
            ):
                store.remove(quad)
            store.add(ox.Quad(ox.NamedNode(EX + user), ox.NamedNode(verb), ox.Literal(value)))

    for user in USERS:
        put(user, 1, 1)
    engine = Engine(policy="AT-LRU", budget=1, n=9)
    engine.service(f"{EX}BKG", lambda pattern: InProcessEndpoint(pattern, store), modified=MODIFIED)
    engine.register(QUERY)
    engine.bind(f"{EX}s", stream())
    answers = engine.run()
    assert next(answers).stats["budget_spent"] == 0
    put("u3", 1000, 2)
    second = next(answers)
    assert second.stats["budget_spent"] == 1
    assert second.content.rows[0].bindings["user"] == ox.NamedNode(f"{EX}u3")  # type: ignore[union-attr]
    answers.close()  # type: ignore[attr-defined]
