"""The accepted forms of RSP-QL: liberal where engines differ, with one tree for one meaning."""

from __future__ import annotations

import pytest

from rsp_engine.errors import QuerySyntaxError
from rsp_engine.grammar import parse, to_sparql
from rsp_engine.grammar.tree import (
    BareName,
    BuiltInCall,
    Collection,
    Count,
    CountWindow,
    Duration,
    Expression,
    FunctionCall,
    Iri,
    Literal,
    NamedCall,
    QueryUnit,
    SelectAs,
    SelectForm,
    TimeWindow,
    find,
)

LISTING_1 = """PREFIX : <http://example.org/>
REGISTER STREAM :TopkUsersToContact AS
SELECT ?user
  F(?mentionCount,?followerCount) as ?score
FROM NAMED WINDOW :W ON :S [RANGE 9m STEP 3m]
WHERE{
  WINDOW :W {?user :hasMentions ?mentionCount}
  SERVICE :BKG {?user :hasFollowers ?followerCount}
}
ORDER BY DESC (?score)
LIMIT 1
"""


def window(size: str) -> TimeWindow | CountWindow:
    return parse(f"ASK FROM NAMED WINDOW <w:w> ON <s:s> [{size}] {{}}").windows[0].frame


def scored(item: str) -> Expression:
    form = parse(f"PREFIX : <http://example.org/> SELECT {item} {{ ?s ?a ?b }}").form
    assert isinstance(form, SelectForm)
    [score] = form.clause.items
    assert isinstance(score, SelectAs)
    return score.expression


@pytest.mark.parametrize(
    "other",
    [
        LISTING_1.replace("\n", "\r\n"),
        LISTING_1.lower().replace("topkuserstocontact", "TopkUsersToContact")
        .replace(":w", ":W").replace(":s ", ":S ").replace(":bkg", ":BKG")
        .replace("hasm", "hasM").replace("hasf", "hasF").replace("ncount", "nCount")
        .replace("rcount", "rCount").replace("f(", "F("),
        LISTING_1.replace("STEP", "SLIDE"),
        LISTING_1.replace("ON :S", "ON STREAM :S"),
        LISTING_1.replace("9m", "PT9M").replace("3m", "180000"),
        LISTING_1.replace("F(?mentionCount,?followerCount) as ?score",
                          "(F(?mentionCount, ?followerCount) AS ?score)"),
        LISTING_1.replace("WHERE{", "# the pattern\n{"),
        "REGISTER STREAM :TopkUsersToContact AS\n" + LISTING_1.replace(
            "REGISTER STREAM :TopkUsersToContact AS\n", ""),
        LISTING_1.replace(":W", "<http://example.org/W>"),
    ],
    ids=["CRLF", "lower case", "SLIDE", "ON STREAM", "other durations", "brackets", "comment",
         "PREFIX after REGISTER", "full IRI"],
)  # fmt: skip
def test_listing_1_reads_the_same_however_it_is_written(other):
    assert parse(other) == parse(LISTING_1)


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("9m", 540_000), ("PT9M", 540_000), ("540000", 540_000), ("500ms", 500), ("2h", 7_200_000),
        ("1d", 86_400_000), ("1.5s", 1_500), ("P1DT2H", 93_600_000), ("PT0.25S", 250),
        ("-5s", -5_000), ("-PT5S", -5_000), ("-5", -5), ("0", 0),
    ],
)  # fmt: skip
def test_a_duration_is_xsd_short_or_a_bare_number_of_milliseconds(written, milliseconds):
    assert window(f"RANGE {written}") == TimeWindow(Duration(milliseconds))


@pytest.mark.parametrize("written", ["P1M", "P1Y", "0.5ms", "PT", "P", "9x", "PT5X", "1e3", "ten"])
def test_text_without_a_fixed_length_is_no_duration(written):
    with pytest.raises(QuerySyntaxError):
        window(f"RANGE {written} STEP 1s")


def test_windows_count_time_or_elements_and_slide_or_tumble():
    minute = Duration(60_000)
    assert window("RANGE 1m STEP 1s") == TimeWindow(minute, Duration(1_000))
    assert window("RANGE 1m") == window("RANGE 1m TUMBLING") == TimeWindow(minute)
    assert window("ELEMENTS 10 STEP 2") == CountWindow("ELEMENTS", Count(10), Count(2))
    assert window("triples 10 slide 2") == CountWindow("TRIPLES", Count(10), Count(2))
    assert window("ROWS 10") == window("ROWS 10 TUMBLING") == CountWindow("ROWS", Count(10))


@pytest.mark.parametrize("kind", ["RSTREAM", "ISTREAM", "DSTREAM", "STREAM", "QUERY", None])
@pytest.mark.parametrize("name", ["<http://example.org/out>", ":out", "out"])
def test_a_query_is_registered_under_any_kind_and_name(kind, name):
    text = f"PREFIX : <http://example.org/> REGISTER {kind or ''} {name} AS ASK {{}}"
    register = parse(text).register
    assert register is not None
    assert register.kind == kind
    assert register.r2s == (kind if kind in ("ISTREAM", "DSTREAM") else "RSTREAM")
    assert register.name == (BareName("out") if name == "out" else Iri("http://example.org/out"))


def test_a_scoring_function_is_an_iri_a_prefixed_name_or_a_bare_name():
    iri = FunctionCall(Iri("http://example.org/f"), (Literal("1", XSD_INTEGER),))
    assert scored(":f(1) AS ?s2") == scored("(<http://example.org/f>(1) AS ?s2)") == iri
    assert scored("F(1) AS ?s2") == NamedCall("F", (Literal("1", XSD_INTEGER),))
    assert scored("(strlen(1) AS ?s2)") == BuiltInCall("STRLEN", (Literal("1", XSD_INTEGER),))


XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def test_a_window_may_stand_wherever_a_graph_may():
    query = parse("""
        PREFIX : <http://example.org/>
        SELECT * FROM NAMED WINDOW :w ON :s [RANGE 1m] {
          { WINDOW :w { ?a ?b ?c } } UNION { OPTIONAL { WINDOW ?w { ?a ?b ?c } } }
          MINUS { WINDOW :w { ?a ?b 1 } }
          FILTER EXISTS { WINDOW :w { ?a ?b 2 } }
          { SELECT ?d { WINDOW :w { ?d ?e ?f } } }
          GRAPH ?g { WINDOW :w { ?h ?i ?j } }
        }""")
    text = to_sparql(query)
    assert "WINDOW" not in text
    assert text.count("GRAPH") == 7


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("?x -1", "?x - 1"), ("?x+1*2", "?x + (1 * 2)"), ("?x -1*2", "?x - (1*2)"),
        ("1 + 2 + 3", "1+2+3"), ("(((?x)))", "?x"), ("?a && ?b || ?c", "(?a && ?b) || ?c"),
        ("!?a = ?b", "(!?a) = ?b"), ("'a'", '"a"'), ("'''a'''", '"""a"""'), ("TRUE", "true"),
        ('"1"^^<http://www.w3.org/2001/XMLSchema#integer>', "1"), ("'\\u0041'", "'A'"),
        ("$x", "?x"), ("sameterm(?a,?b)", "SAMETERM(?a, ?b)"),
    ],
)  # fmt: skip
def test_expressions_that_mean_the_same_have_the_same_tree(one, other):
    assert scored(f"({one} AS ?new)") == scored(f"({other} AS ?new)")


@pytest.mark.parametrize(
    ("one", "other"),
    [("1 - 2 - 3", "1 - (2 - 3)"), ("- 1", "-1"), ("!(?a = ?b)", "!?a = ?b"),
     ("?a || (?b || ?c)", "?a || ?b || ?c"), ("1 / 2 * 3", "1 / (2 * 3)")],
)  # fmt: skip
def test_expressions_that_differ_in_meaning_have_different_trees(one, other):
    assert scored(f"({one} AS ?new)") != scored(f"({other} AS ?new)")


def objects(text: str) -> QueryUnit:
    return parse(f"PREFIX : <http://example.org/> BASE <http://example.org/x/> ASK {{ {text} }}")


def test_names_are_resolved_against_prefix_and_base():
    assert Iri("http://example.org/y") in find(objects("?s ?p <../y>"), Iri)
    assert Iri("http://example.org/a~b") in find(objects("?s ?p :a\\~b"), Iri)
    assert Iri("http://example.org/a%41") in find(objects("?s ?p :a%41"), Iri)
    assert Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type") in find(objects("?s a ?o"), Iri)


def test_comments_may_stand_in_an_empty_list():
    assert list(find(objects("?s ?p ( # nothing\n )"), Collection)) == [Collection(())]
