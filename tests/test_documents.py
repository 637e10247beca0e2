"""What the documents show is what happens: every block is followed, every flag and form is told.

See `documents` for what is done with a block.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_type_hints

import pytest

from rsp_engine import Engine
from rsp_engine.cli.flags import RunFlags
from rsp_engine.errors import QueryError
from rsp_engine.grammar import parse, validate
from rsp_engine.grammar.builtins import BUILTINS
from rsp_engine.grammar.parser import DEEPEST
from rsp_engine.grammar.parser import tables as raw_parser
from rsp_engine.grammar.validate import LARGEST_QUERY
from rsp_engine.http_client import faults
from rsp_engine.io.sinks import FORMATS as SINKS
from rsp_engine.io.sources.formats import SOURCE_FORMATS as SOURCES
from rsp_engine.model.option import declared
from rsp_engine.model.quantities import parse_duration
from rsp_engine.options import OPERATORS
from rsp_engine.policies import POLICIES
from rsp_engine.replica.sparql_client import request_text as asking
from tests.data import PROJECT
from tests.documents import DOCUMENTS, Reader, blocks, commands, flags, matches, page, tables

if TYPE_CHECKING:
    from pathlib import Path

DOCS = PROJECT / "docs"
LANGUAGE = page("language.md")
OPTIONS = get_type_hints(RunFlags).values()
ON_SPARK = {"spark.md"}
"""Documents about Spark; all others are followed without it, as `RSP_RUNNER=local` says."""
MOST_NOT_RUN = 1
"""How many blocks may say that no test runs them."""


def text(*documents: Path) -> str:
    return "\n".join(document.read_text(encoding="utf-8") for document in documents)


def name_of(document: Path) -> str:
    return str(document.relative_to(PROJECT))


def codes(markdown: str) -> set[str]:
    """Return what stands in back quotes, outside of blocks."""
    plain = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`\n]+)`", plain))


def followed(document: Path):
    marks = [pytest.mark.xdist_group("spark")] if document.name in ON_SPARK else []
    return pytest.param(document, marks=marks, id=name_of(document))


@pytest.mark.parametrize(
    "document", [followed(document) for document in DOCUMENTS if blocks(document)]
)
def test_a_document_can_be_followed_word_by_word(document, tmp_path):
    runner = {"RSP_RUNNER": None} if document.name in ON_SPARK else {}
    with Reader.at_work(tmp_path, **runner) as reader:
        for block in blocks(document):
            reader.follow(block)


def test_next_to_no_block_is_left_out():
    left_out = [str(b) for document in DOCUMENTS for b in blocks(document) if b.is_not_run]
    assert len(left_out) <= MOST_NOT_RUN, left_out


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nc\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nb\nc\n", True),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        (".\n", "a\n", False),
    ],
)
def test_what_is_shown_is_compared_with_what_is_printed(shown, printed, expected):
    assert matches(shown, printed) is expected


# ── The documents as a whole ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document):
    plain = re.sub(r"^```.*?^```$", "", text(document), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", plain):
        if not link.startswith(("http://", "https://")):
            path, _, anchor = link.partition("#")
            target = (document.parent / path) if path else document
            assert target.exists(), f"{document.name}: {link}"
            assert not anchor or anchor in anchors(target), f"{document.name}: {link}"


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text(document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_lists_every_document():
    listed = set(re.findall(r"\]\((\w[\w/-]*\.md)\)", text(DOCS / "README.md")))
    assert listed == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {"README.md"}


def test_the_site_has_every_document():
    site = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": (\S+\.md)$", site, re.MULTILINE))
    assert listed == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def test_a_page_can_be_named_by_its_file_name():
    names = [path.name for path in DOCS.rglob("*.md")]
    assert len(names) == len(set(names))


def test_every_flag_is_told():
    told = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text(*DOCUMENTS)))
    assert flags() - {"--help"} - told == set()


def test_every_flag_that_is_told_exists():
    foreign = re.compile(r"^(?!\s*(?:\.venv/bin/)?rsp\b)[\w./-]+ .*$", re.MULTILINE)
    for document in DOCUMENTS:
        own = re.sub(r"`docker [^`]*`", "", text(document))
        for block in blocks(document):
            if block.language in (
                "sh",
                "dockerfile",
            ):  # lines of other programs have flags of their own
                joined = block.text.replace("\\\n", " ")
                own = own.replace(block.text, foreign.sub("", joined))
        told = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", own))
        assert told - flags() - {"--help"} == set(), document.name


def test_every_command_is_told():
    told = text(*DOCUMENTS)
    for name in commands():
        assert f"rsp {name}".strip() in told, name


def test_variables_of_the_environment_that_are_told_are_read():
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("rsp_engine", "tests")
        for path in (PROJECT / folder).rglob("*.py")
    )
    derived = {known.variable for kind in OPTIONS for known in declared(kind)}
    for variable in set(re.findall(r"\bRSP_[A-Z_]*[A-Z]\b", text(*DOCUMENTS))):
        known = variable if not variable.startswith("RSP_SERVICE_") else "RSP_SERVICE_"
        assert known in derived or known in code, variable


# ── What is listed is what there is ─────────────────────────────────────────────────────────


def test_the_policies_that_are_told_are_those_of_the_engine():
    listed = {
        name
        for table in tables(page("policies.md"))
        if table.heading == "The policies"
        for cells in table.rows
        for name in re.findall(r"[A-Z]+(?:-[A-Z]+)?", cells[0])
    }
    assert listed == set(POLICIES)


def test_every_operator_is_told():
    assert set(OPERATORS) - {"auto"} <= codes(text(page("ranking.md")))


def test_every_format_and_option_of_sources_is_told():
    told = codes(text(page("sources.md")))
    for name, source in SOURCES.items():
        assert name in told
        assert {*source.extensions} <= told
        for option in source.options:
            assert any(code.startswith((f"{option}=", f"{option} ")) for code in told), option


def test_every_format_of_answers_is_told():
    assert set(SINKS) <= codes(text(page("running.md")))


def test_every_fault_is_told():
    names = (
        value for name, value in vars(faults).items() if name.isupper() and isinstance(value, str)
    )
    others = (asking.BLANK_NODE_KEY, asking.LONG_KEY, asking.WRONG_KEY)
    assert {*names, *others} <= codes(text(page("failures.md")))


# ── The language ────────────────────────────────────────────────────────────────────────────

PREFIXES = """
    PREFIX : <http://example.org/>
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
WINDOW = "FROM NAMED WINDOW :w ON STREAM :s [RANGE 9m STEP 3m]"
WHERE = "WHERE { WINDOW :w { ?s :p ?o } }"
FRAMES = {
    "REGISTER": f"{{form}} SELECT ?s {WINDOW} {WHERE}",
    "Windows": f"SELECT ?s {{form}} {WHERE}",
    "Durations": f"SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE {{form}} STEP {{form}}] {WHERE}",
    "Static graphs": f"SELECT ?s {{form}} {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?o }} {{read}} }}",
    "Query forms": f"{{form}} {WINDOW} {WHERE}",
    "Patterns": (
        f"SELECT * FROM <people.ttl> FROM NAMED :people {WINDOW}"
        " WHERE { WINDOW :w { ?s :p ?o } ?s :r ?x . GRAPH :people { ?s :r ?y } {form} }"
    ),
    "triples": f"SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ {{form}} }} }}",
    "path": f"SELECT ?s {WINDOW} WHERE {{ WINDOW :w {{ ?s {{form}} ?o }} }}",
    "Expressions": (
        f"SELECT ({{form}} AS ?value) FROM <people.ttl> {WINDOW}"
        " WHERE { WINDOW :w { ?s :p ?o } ?s :r ?x }"
    ),
    "Modifiers": f"SELECT * {WINDOW} {WHERE} {{form}}",
    "Refused": "{form}",
}


def forms(section: str) -> list[str]:
    found = [
        cells[0].strip("`")
        for table in tables(LANGUAGE)
        if section == (table.first if table.first in FRAMES else table.heading)
        for cells in table.rows
    ]
    assert found, section
    return found


def query_of(section: str, form: str) -> str:
    frame = FRAMES[section]
    if form.startswith("GROUP BY"):
        frame = frame.replace("SELECT *", "SELECT (COUNT(*) AS ?n)")
    read = "GRAPH ?g { ?s :q ?x }" if "NAMED" in form else "?s :q ?x"
    return PREFIXES + frame.replace("{form}", form).replace("{read}", read)


@pytest.fixture
def engine(tmp_path):
    made = Engine()
    made.function("F", lambda a, b: a + b)
    made.function("http://example.org/f", lambda a: a)
    made.service("http://example.org/remote", "http://localhost:1/query")
    people = tmp_path / "people.ttl"
    people.write_text("<http://example.org/a> <http://example.org/p> 1 .")
    made.graph("http://example.org/people", people)
    return made


@pytest.mark.parametrize(
    ("section", "form"),
    [(section, form) for section in FRAMES if section != "Refused" for form in forms(section)],
)
def test_a_form_of_the_language_is_taken_and_planned(section, form, engine, tmp_path):
    query = query_of(section, form)
    found = validate(query)
    assert not found.errors, found.errors
    assert not found.warnings, found.warnings
    engine.register(query, folder=tmp_path)


@pytest.mark.parametrize("form", forms("Refused"))
def test_a_form_that_is_refused_is(form, engine):
    with pytest.raises(QueryError):
        engine.register(PREFIXES + form)


def test_durations_are_as_long_as_the_table_says():
    [durations] = [table for table in tables(LANGUAGE) if table.heading == "Durations"]
    for written, milliseconds in durations.rows:
        told = int(milliseconds.partition(":")[0].replace(",", ""))
        assert parse_duration(written.strip("`")) == told


def test_every_keyword_and_function_is_told():
    grammar = (PROJECT / "rsp_engine" / "grammar" / "rspql.lark").read_text(encoding="utf-8")
    keywords = set(re.findall(r'"([A-Z_]+)"i', grammar))
    told = set(re.findall(r"[A-Z_0-9]+", text(LANGUAGE)))
    assert keywords | set(BUILTINS) <= told
    assert "all of them: " in text(LANGUAGE)


def test_every_rule_of_the_grammar_is_shown():
    """Or else there would be a form that is accepted, and not told."""
    grammar = (PROJECT / "rsp_engine" / "grammar" / "rspql.lark").read_text(encoding="utf-8")
    rules = set(re.findall(r"^[?!]?([a-z]\w*): ", grammar, re.MULTILINE))
    rules |= set(re.findall(r"-> (\w+)", grammar))
    shown = {
        node.data
        for section in FRAMES
        for form in forms(section)
        if section != "Refused" or form.startswith(("DESCRIBE", "CONSTRUCT"))
        for node in raw_parser().parse(query_of(section, form)).iter_subtrees()
    }
    choices = "registered_name relation primary factor path_primary path_step path_element"
    assert rules - shown - set(choices.split()) == set()  # a choice leaves no node of its own


def test_limits_of_the_language_are_those_of_the_code():
    told = " ".join(text(LANGUAGE).split())
    assert f"of at most {LARGEST_QUERY // 1024**2} MB" in told
    assert f"nested at most {DEEPEST} deep" in told


def test_the_query_of_the_readme_is_the_query_of_the_project():
    first = next(b for b in blocks(PROJECT / "README.md") if b.language == "sparql")
    query = (PROJECT / "queries" / "influencers-expression.rspql").read_text(encoding="utf-8")
    assert parse(first.text) == parse(query)
