"""`rsp validate`, as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.data import PROJECT

GOOD = "ASK FROM NAMED WINDOW <w:w> ON <s:s> [RANGE 9m STEP 3m] { WINDOW <w:w> { ?s ?p ?o } }"

BAD = GOOD.replace("WINDOW <w:w> {", "WINDOW <w:v> {")
COLUMN = BAD.index("<w:v>") + 1


def rsp(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "rsp_engine.cli", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)  # noqa: S603


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.rspql"
    path.write_text(GOOD)
    return str(path)


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "bad.rspql"
    path.write_text(BAD)
    return str(path)


def test_a_good_file_gets_a_line_on_standard_output_and_exit_0(good):
    done = rsp("validate", good)
    assert done.returncode == 0
    assert done.stdout.decode() == f"{good}: ok: ASK, 1 window on 1 stream\n"
    assert done.stderr == b""


def test_a_bad_file_gets_its_errors_on_standard_error_and_exit_2(good, bad):
    done = rsp("validate", bad, good)
    assert done.returncode == 2
    assert done.stdout.decode() == f"{good}: ok: ASK, 1 window on 1 stream\n"
    assert f"{bad}:1:{COLUMN}: error: window <w:v> is not declared" in done.stderr.decode()


def test_json_is_one_array_for_many_files(good, bad, tmp_path):
    broken = tmp_path / "broken.rspql"
    broken.write_text("SELECT * {\r\n  ?s ?p")
    done = rsp("validate", "--format", "json", good, bad, str(broken))
    assert done.returncode == 2
    assert done.stderr == b""
    first, second, third = json.loads(done.stdout)
    assert first == {"file": good, "ok": True, "errors": [], "warnings": []}
    assert (second["file"], second["ok"]) == (bad, False)
    [error] = second["errors"]
    assert set(error) == {"kind", "line", "column", "message", "hint"}
    assert (error["kind"], error["line"], error["column"]) == ("semantic", 1, COLUMN)
    assert second["warnings"] == []
    [error] = third["errors"]
    assert (error["kind"], error["line"], error["column"]) == ("syntax", 2, 8)


def test_a_dash_is_standard_input():
    assert rsp("validate", "-", stdin=GOOD.encode()).returncode == 0
    assert rsp("validate", "-", stdin=b"\xef\xbb\xbf" + GOOD.encode()).returncode == 0


BAD_INPUT = {
    "not UTF-8": (b"# caf\xe9\nASK {}", "1:6: error: the text is not UTF-8: byte 0xe9"),
    "UTF-16": ("ASK {}".encode("utf-16"), "1:1: error: the text is not UTF-8: byte 0xff"),
    "a mark and no UTF-8": (
        b"\xef\xbb\xbfASK { \xe9 }",
        "1:7: error: the text is not UTF-8: byte 0xe9",
    ),
    "a mark, two bytes and no UTF-8": (
        b"\xef\xbb\xbf\xc3\xa9\xe9",
        "1:2: error: the text is not UTF-8: byte 0xe9",
    ),
    "empty": (b"", "1:1: error: there is no query here"),
    "only a comment": (b"# later\n", "error: there is no query here"),
    "5 MB": (b"ASK { ?s ?p ?o }".ljust(5_000_000), "error: it is larger than 2 MB"),
    "2,000 nested groups": (
        b"ASK " + b"{" * 2000 + b"}" * 2000, "error: this is nested too deep"
    ),
    "2,000 nested brackets": (
        b"ASK { FILTER " + b"(" * 2000 + b"1" + b")" * 2000 + b"}", "error: nothing",
    ),
    "2,000 nested lists": (
        b"ASK { ?s ?p " + b"(" * 2000 + b")" * 2000 + b"}", "error: this is nested too deep"
    ),
    "a zero byte": (b"ASK { \x00 }", "1:7: error: unexpected character U+0000"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "message"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_input_gets_one_clear_error(data, message, tmp_path):
    path = tmp_path / "input.rspql"
    path.write_bytes(data)
    done = rsp("validate", str(path))
    shown = done.stderr.decode()
    assert "Traceback" not in shown
    if message == "error: nothing":
        # Brackets around an expression leave no trace in the tree, so any number is fine.
        assert done.returncode == 0
        return
    assert done.returncode == 2
    assert message in shown
    assert shown.count("error:") == 1
    assert len(shown) < 1000


def test_a_missing_file_and_a_folder_get_one_clear_error(tmp_path):
    done = rsp("validate", str(tmp_path / "nothing.rspql"), str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        f"{tmp_path}/nothing.rspql: error: there is no such file",
        "  = hint: check the path",
        f"{tmp_path}: error: it is a folder, not a query",
        f"  = hint: name the files in it: {tmp_path}/*.rspql",
    ]


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "--help"], ["--version"]])
def test_help_and_version_exit_0(arguments):
    assert rsp(*arguments).returncode == 0


@pytest.mark.parametrize(
    "arguments", [["validate"], ["nonsense"], ["validate", "--format", "x", "y"]]
)
def test_a_wrong_call_exits_2_and_shows_no_traceback(arguments):
    done = rsp(*arguments)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_validation_imports_no_heavy_package():
    command = [sys.executable, "-X", "importtime", "-m", "rsp_engine.cli", "validate"]
    command.append(str(PROJECT / "queries" / "influencers.rspql"))
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)  # noqa: S603
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.decode().splitlines()}
    assert "lark" in imported
    assert not {"pyspark", "pyarrow", "rdflib", "pyoxigraph", "numpy"} & imported
