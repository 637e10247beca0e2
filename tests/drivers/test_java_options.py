"""Java starts with options of its own and an archive of classes, unless the user sets options."""

from __future__ import annotations

import pytest

from rsp_engine.drivers.spark.java_options import ClassArchive, class_archive, java_environment

JAVA = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment'


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RSP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "core.jar").write_bytes(b"core")
    return tmp_path / "spark"


def archive_of(java, home) -> ClassArchive:
    archive = class_archive(java, home)
    assert archive is not None
    return archive


def kept(archive, content=b"classes"):
    archive.draft.write_bytes(content)
    archive.keep_draft()
    return archive.file


def test_the_first_start_makes_the_archive_that_the_next_ones_use(cache, home):
    archive = archive_of(JAVA, home)
    first = java_environment(archive, {})["SPARK_SUBMIT_OPTS"]
    assert f"-XX:ArchiveClassesAtExit={archive.draft}" in first
    file = kept(archive)
    assert [path.name for path in cache.iterdir()] == [file.name]
    second = java_environment(class_archive(JAVA, home), {})["SPARK_SUBMIT_OPTS"]
    assert f"-XX:SharedArchiveFile={file}" in second
    assert "ArchiveClassesAtExit" not in second
    for options in (first, second):
        assert {"-Xshare:auto", "-XX:+VerifySharedSpaces"} <= set(options.split())


def test_an_archive_belongs_to_a_java_and_a_class_path(cache, home):
    archive = archive_of(JAVA, home)
    kept(archive)
    assert archive_of(JAVA.replace("15", "16"), home).file is None
    (home / "jars" / "core.jar").write_bytes(b"core, changed")
    assert archive_of(JAVA, home).file is None


@pytest.mark.parametrize("damage", [b"", b"class", b"classes and more"])
def test_an_archive_of_another_size_is_made_again(cache, home, damage):
    archive = archive_of(JAVA, home)
    kept(archive).write_bytes(damage)
    assert archive.file is None
    assert "ArchiveClassesAtExit" in java_environment(archive, {})["SPARK_SUBMIT_OPTS"]
    assert kept(archive, b"others").read_bytes() == b"others"
    assert len(list(cache.iterdir())) == 1


def test_an_archive_that_others_can_write_is_not_used(cache, home):
    archive = archive_of(JAVA, home)
    kept(archive).chmod(0o666)
    assert archive.file is None


def test_a_draft_without_java_leaves_nothing(cache, home):
    archive = archive_of(JAVA, home)
    archive.keep_draft()
    archive.drop_draft()
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("java", ["", 'java version "1.8.0"', 'openjdk version "11.0.2"'])
def test_an_old_java_has_no_archive(cache, home, java):
    assert class_archive(java, home) is None
    options = java_environment(None, {})["SPARK_SUBMIT_OPTS"]
    assert "Archive" not in options


def test_there_is_no_archive_without_a_folder_or_spark(cache, home, monkeypatch):
    assert class_archive(JAVA, home / "elsewhere") is None
    cache.mkdir(exist_ok=True)
    cache.chmod(0o777)
    assert class_archive(JAVA, home) is None


@pytest.mark.parametrize(
    ("environment", "defaults"),
    [
        ({"SPARK_SUBMIT_OPTS": "-XX:+UseG1GC"}, ""),
        ({"JAVA_TOOL_OPTIONS": "-XX:+UseZGC"}, ""),
        ({"JDK_JAVA_OPTIONS": "-Xint"}, ""),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.driver.extraJavaOptions=-Xint pyspark-shell"}, ""),
        ({"PYSPARK_SUBMIT_ARGS": "--driver-java-options -Xint pyspark-shell"}, ""),
        ({}, "spark.driver.defaultJavaOptions -XX:+UseG1GC"),
    ],
)
def test_options_of_the_user_stand_alone(cache, home, environment, defaults):
    assert java_environment(class_archive(JAVA, home), environment, defaults) == {}


def test_other_settings_of_the_user_do_not_matter():
    usual = {"PYSPARK_SUBMIT_ARGS": "--conf spark.driver.memory=4g pyspark-shell", "HOME": "/"}
    assert java_environment(None, usual, "spark.ui.enabled true") == java_environment(None, {})
