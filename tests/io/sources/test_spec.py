"""Source specifications, and the formats they select."""

from __future__ import annotations

import pytest

from rsp_engine.errors import SourceError
from rsp_engine.io.sources import SOURCE_FORMATS, open_source
from rsp_engine.io.sources.spec import read_spec
from tests.io.sources.reading import read, write

QUAD = "<http://example.org/a> <http://example.org/p> 'x' <http://example.org/g/1> .\n".replace(
    "'", '"'
)
LINE = '{"timestamp": 1, "graph": ""}\n'


@pytest.mark.parametrize(
    ("text", "place", "options"),
    [
        ("a.nq", "a.nq", {}),
        ("a.nq?", "a.nq", {}),
        ("a.nq?time=iri", "a.nq", {"time": "iri"}),
        ("-?format=csv&delimiter=%09", "-", {"format": "csv", "delimiter": "\t"}),
        ("a.csv?template=b?c.ttl", "a.csv", {"template": "b?c.ttl"}),
        ("a.csv?template=x%26y=z.ttl", "a.csv", {"template": "x&y=z.ttl"}),
        ("http://example.org/a.nq", "http://example.org/a.nq", {}),
        ("http://example.org/a?b=c?", "http://example.org/a?b=c", {}),
        ("http://example.org/a?b=c?time=iri", "http://example.org/a?b=c", {"time": "iri"}),
    ],
)
def test_options_follow_a_question_mark(text, place, options):
    spec = read_spec(text)
    assert (spec.place, spec.options) == (place, options)


def test_a_question_mark_in_the_name_of_a_file_that_exists_belongs_to_the_name(tmp_path):
    plain = write(tmp_path / "what?time=7.nq", QUAD)
    assert read_spec(str(plain)).options == {}
    assert read_spec(f"{plain}?time=iri").place == str(plain)
    assert len(read(plain)[0]) == 1
    assert len(read(f"{plain}?time=iri")[0]) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", LINE), ("a.NDJSON", LINE), ("a.nq", QUAD), ("a.nquads", QUAD), ("a.trig", "")],
)
def test_the_extension_tells_the_format(tmp_path, name, text):
    elements, letters = read(write(tmp_path / name, text))
    assert len(elements) == bool(text)
    assert letters == []


def test_the_option_format_goes_before_the_extension(tmp_path):
    path = write(tmp_path / "a.csv", QUAD)
    assert len(read(f"{path}?format=nquads")[0]) == 1
    assert len(read(f"{path}?format=NQ")[0]) == 1


def test_every_format_has_a_line_of_help():
    assert set(SOURCE_FORMATS) == set(
        "jsonl nquads trig turtle-files csv tsv json parquet jelly".split()
    )
    assert all(found.help and "\n" not in found.help for found in SOURCE_FORMATS.values())


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("", "no source is named", "name a file"),
        ("-", "has no name that shows its format", "jsonl, nquads, trig, turtle-files, csv, tsv"),
        ("missing.nq", "there is no such file", "check the path"),
        ("missing", "there is no such file", "check the path"),
        ("missing.nq?format=nquads", "there is no such file", "check the path"),
        ("\0.nq?format=nq", "cannot be read", ""),
        ("x" * 5_000 + "?format=nq", "cannot be read", ""),
        ("-?format=nqads", "there is no format nqads", "did you mean nquads?"),
        ("-?format=zip", "there is no format zip", "the formats are: jsonl"),
        ("-?format=nquads&tiem=iri", "there is no option tiem", "did you mean time?"),
        ("-?format=nquads&zzz=1", "there is no option zzz", "the options are: format, time"),
        ("-?format=jsonl&time=iri", "there is no option time", "the options are: format"),
        ("-?format=nquads&time=pro", "the option time cannot be 'pro'", "did you mean prov?"),
        ("-?format=nquads&time=7", "the option time cannot be '7'", "one of: any, iri, prov"),
        ("-?format", "the option format has no value", "write format=..."),
        ("-?format=nq&format=nq", "the option format is given twice", "give it once"),
        ("ftp://example.org/a", "not read from ftp: addresses", "file:, http:, https:"),
        ("file://other.example/a.nq", "on another computer", "write file:///a.nq"),
        ("http://example.org/a.nq?room=7", "there is no option room", "ends in a question mark"),
        ("http://example.org/a", "does not show the format", "format=NAME"),
        ("http://[::1/a.nq", "it is not a URL", "check the address"),
        ("http://localhost:99999/a.nq", "it cannot be reached", ""),
        ("http://user:secret@localhost:1/a.nq", "user name or a password", "remove the part"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_way_out(spec, message, hint):
    with pytest.raises(SourceError) as refusal:
        open_source(spec)
    assert message in refusal.value.message
    assert hint in (refusal.value.hint or "")


def test_an_unknown_extension_is_refused_with_the_formats(tmp_path):
    path = write(tmp_path / "a.ttl", "")
    with pytest.raises(SourceError, match=r"the extension \.ttl does not show") as refusal:
        open_source(str(path))
    assert all(name in str(refusal.value) for name in SOURCE_FORMATS)


def test_a_folder_is_not_read_as_a_file(tmp_path):
    with pytest.raises(SourceError, match="it is a folder") as refusal:
        open_source(f"{tmp_path}?format=nquads")
    assert "turtle-files" in str(refusal.value)


def test_a_file_without_permission_is_refused(tmp_path):
    path = write(tmp_path / "a.nq", QUAD)
    path.chmod(0)
    try:
        path.read_bytes()
    except PermissionError:
        with pytest.raises(SourceError, match="check its permissions"):
            open_source(str(path))
    else:
        pytest.skip("this user can read every file")


def test_a_file_url_is_a_path(tmp_path):
    path = write(tmp_path / "a b.nq", QUAD)
    elements, _ = read(path.as_uri() + "?time=iri")
    assert [element.source for element in elements] == [path.as_uri()]
