"""`scripts/java` on machines of every kind, made of fake programs: nothing is installed."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "java"
TOOLS = ("env", "ln", "sed", "true")  # what the script, or a fake program, takes from the system

JAVA_17 = 'openjdk version "17.0.9" 2023-10-17'
JAVA_11 = 'openjdk version "11.0.21" 2023-10-17'
INSTALL = "apt-get install -y -qq --no-install-recommends"


@dataclass(frozen=True)
class Machine:
    """A folder that is the whole PATH, and the calls that its fake programs received."""

    root: Path

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def calls(self) -> list[str]:
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def program(self, name: str, body: str, folder: Path | None = None) -> Path:
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def java(self, version_line: str, folder: Path | None = None) -> Path:
        return self.program("java", f"echo '{version_line}' >&2", folder)

    def user(self, number: int) -> None:
        self.program("id", f"echo {number}")

    def sudo(self, *, asks_for_a_password: bool) -> None:
        log = f'echo "sudo $*" >>{self.root}/calls'
        run = 'shift; exec "$@"'  # the first argument is -n
        self.program("sudo", "exit 1" if asks_for_a_password else f"{log}; {run}")

    def manager(self, name: str, offers: str, brings: str | None = JAVA_17) -> None:
        """Add a package manager: it knows the package `offers`, which holds the Java `brings`."""
        waiting = self.java(brings or "", self.root / "package")
        install = (
            f"ln -sf {waiting} {self.bin}/java" if brings else "echo no room on disk >&2; exit 1"
        )
        self.program(
            name,
            f'echo "{name} $*" >>{self.root}/calls\n'
            'case "$*" in\n'
            "*update* | *makecache*) ;;\n"
            f"*--simulate*{offers} | *info*{offers}) ;;\n"
            "*--simulate* | *info*) exit 1 ;;\n"
            f"*{offers}) {install} ;;\n"
            "*) exit 1 ;;\n"
            "esac",
        )

    def run_on_a_terminal(self, answer: str) -> tuple[int, str]:
        """Run the script on a terminal, type an answer, and return its code and what is seen."""
        screen, inner = pty.openpty()
        os.write(screen, answer.encode())
        with subprocess.Popen(  # noqa: S603 - the program is the project's own
            [str(SCRIPT)], env={"PATH": str(self.bin)}, stdin=inner, stdout=inner, stderr=inner
        ) as process:
            os.close(inner)
            seen = b""
            with suppress(OSError):  # the end of the terminal
                while data := os.read(screen, 4096):
                    seen += data
        os.close(screen)
        return process.returncode, seen.decode().replace("\r\n", "\n")

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - the program is the project's own
            [str(SCRIPT)],
            env={"PATH": str(self.bin), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.bin.mkdir()
    for tool in TOOLS:
        path = shutil.which(tool)
        assert path is not None
        (machine.bin / tool).symlink_to(path)
    machine.user(1000)
    return machine


def test_the_script_is_executable() -> None:
    assert os.access(SCRIPT, os.X_OK)


@pytest.mark.parametrize(
    "version_line",
    [
        JAVA_17,
        'openjdk version "21" 2023-09-19',
        'openjdk version "22-ea" 2024-03-19',
        'java version "17.0.1" 2021-10-19 LTS',
        'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.9" 2023-10-17',
    ],
)
def test_a_recent_java_on_the_path_is_enough(machine: Machine, version_line: str) -> None:
    machine.java(version_line)
    machine.user(0)
    machine.manager("apt-get", offers="openjdk-17-jre-headless")
    result = machine.run()
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert machine.calls == []


def test_a_recent_java_in_java_home_is_enough(machine: Machine) -> None:
    home = machine.root / "a home"
    machine.java(JAVA_17, home / "bin")
    assert machine.run(JAVA_HOME=str(home)).returncode == 0


def test_an_old_java_home_is_refused_even_beside_a_recent_java(machine: Machine) -> None:
    home = machine.root / "home"
    machine.java(JAVA_11, home / "bin")
    machine.java(JAVA_17)
    result = machine.run(JAVA_HOME=str(home))
    assert result.returncode == 1
    assert "found: Java 11." in result.stderr
    assert f"JAVA_HOME is {home}: unset it" in result.stderr


def test_a_java_home_without_java_is_refused(machine: Machine) -> None:
    result = machine.run(JAVA_HOME=str(machine.root / "nowhere"))
    assert result.returncode == 1
    assert "found: none." in result.stderr


@pytest.mark.parametrize(
    ("version_line", "found"),
    [
        (JAVA_11, "Java 11"),
        ('java version "1.8.0_392"', "Java 8"),
        ("Unable to locate a Java Runtime.", "none"),
    ],
)
def test_what_was_found_instead_is_told(machine: Machine, version_line: str, found: str) -> None:
    machine.java(version_line)
    result = machine.run()
    assert result.returncode == 1
    assert f"Java 17 or later is needed; found: {found}." in result.stderr


def test_root_installs_java_17_with_apt(machine: Machine) -> None:
    machine.user(0)
    machine.manager("apt-get", offers="openjdk-17-jre-headless")
    result = machine.run()
    assert result.returncode == 0
    assert result.stderr.splitlines() == [
        "Installing openjdk-17-jre-headless, since Spark needs Java 17 or later.",
        "Installed openjdk-17-jre-headless: `java` is Java 17 now.",
    ]
    assert machine.calls == [
        "apt-get update -qq",
        "apt-get install --simulate openjdk-17-jre-headless",
        f"{INSTALL} openjdk-17-jre-headless",
    ]


@pytest.mark.parametrize("offered", ["openjdk-21-jre-headless", "default-jre-headless"])
def test_where_there_is_no_java_17_another_package_is_taken(machine: Machine, offered: str) -> None:
    machine.user(0)
    machine.manager("apt-get", offers=offered)
    assert machine.run().returncode == 0
    assert machine.calls[-1] == f"{INSTALL} {offered}"


def test_sudo_without_a_password_installs(machine: Machine) -> None:
    machine.sudo(asks_for_a_password=False)
    machine.manager("apt-get", offers="openjdk-17-jre-headless")
    assert machine.run().returncode == 0
    assert [call for call in machine.calls if call.startswith("sudo")] == [
        "sudo -n true",
        "sudo -n apt-get update -qq",
        f"sudo -n env DEBIAN_FRONTEND=noninteractive {INSTALL} openjdk-17-jre-headless",
    ]


@pytest.mark.parametrize(
    ("manager", "package", "install"),
    [
        ("dnf", "java-17-openjdk-headless", "dnf install -y -q"),
        ("dnf", "java-21-openjdk-headless", "dnf install -y -q"),
        ("apk", "openjdk17-jre-headless", "apk add -q"),
        ("apk", "openjdk21-jre-headless", "apk add -q"),
    ],
)
def test_other_package_managers_install_too(
    machine: Machine, manager: str, package: str, install: str
) -> None:
    machine.user(0)
    machine.manager(manager, offers=package)
    assert machine.run().returncode == 0
    assert machine.calls[-1] == f"{install} {package}"


@pytest.mark.parametrize("has_sudo", [True, False])
def test_who_may_not_install_is_told_the_command(machine: Machine, has_sudo: bool) -> None:
    if has_sudo:
        machine.sudo(asks_for_a_password=True)
    machine.manager("apt-get", offers="openjdk-21-jre-headless")
    result = machine.run()
    assert result.returncode == 1
    command = "sudo apt-get update && sudo apt-get install openjdk-21-jre-headless"
    assert result.stderr.splitlines()[-3:-1] == ["Install one:", f"    {command}"]
    assert all("--simulate" in call for call in machine.calls)


def test_without_a_known_package_manager_the_need_is_told(machine: Machine) -> None:
    machine.user(0)
    result = machine.run()
    assert result.returncode == 1
    assert "Install a Java runtime, and put its java on the PATH." in result.stderr


def test_an_installation_that_fails_is_an_error_with_its_reason(machine: Machine) -> None:
    machine.user(0)
    machine.manager("apt-get", offers="openjdk-17-jre-headless", brings=None)
    result = machine.run()
    assert result.returncode == 1
    assert "no room on disk" in result.stderr
    assert "openjdk-17-jre-headless could not be installed" in result.stderr


def test_an_installation_that_brings_an_old_java_is_an_error(machine: Machine) -> None:
    machine.user(0)
    machine.manager("apt-get", offers="default-jre-headless", brings=JAVA_11)
    result = machine.run()
    assert result.returncode == 1
    assert "found: Java 11." in result.stderr
    assert "Set JAVA_HOME to the home of a later Java." in result.stderr


@pytest.mark.parametrize("answer", ["\n", "y\n", "YES\n"])
def test_on_a_terminal_it_asks_first(machine: Machine, answer: str) -> None:
    machine.user(0)
    machine.manager("apt-get", offers="openjdk-17-jre-headless")
    code, seen = machine.run_on_a_terminal(answer)
    assert code == 0
    assert "found: none.\nInstall it now, with apt-get? [Y/n] " in seen
    assert seen.endswith("Installed openjdk-17-jre-headless: `java` is Java 17 now.\n")


@pytest.mark.parametrize("answer", ["n\n", "no\n", "what?\n", "\x04"])
def test_without_a_yes_nothing_is_installed(machine: Machine, answer: str) -> None:
    machine.user(0)
    machine.manager("apt-get", offers="openjdk-17-jre-headless")
    code, seen = machine.run_on_a_terminal(answer)
    assert code == 1
    assert "sudo apt-get install openjdk-17-jre-headless\n" in seen
    assert all("--simulate" in call for call in machine.calls)


def test_who_may_not_install_is_not_asked(machine: Machine) -> None:
    machine.manager("apt-get", offers="openjdk-17-jre-headless")
    code, seen = machine.run_on_a_terminal("y\n")
    assert code == 1
    assert "[Y/n]" not in seen
    assert all("--simulate" in call for call in machine.calls)


def test_an_old_java_stays_beside_the_one_that_is_installed(machine: Machine) -> None:
    machine.user(0)
    old = machine.java(JAVA_11)
    machine.manager("apt-get", offers="openjdk-17-jre-headless")
    kept = old.rename(machine.root / "java11")
    (machine.bin / "java").symlink_to(kept)
    result = machine.run()
    assert result.returncode == 0
    assert result.stderr.endswith("`java` is Java 17 now; Java 11 is still there.\n")
    assert kept.exists()


@pytest.mark.parametrize(
    ("manager", "package", "asked"),
    [
        ("apt-get", "default-jre-headless", "dpkg-query"),
        ("dnf", "java-21-openjdk-headless", "rpm"),
    ],
)
def test_a_package_that_is_installed_is_not_upgraded(
    machine: Machine, manager: str, package: str, asked: str
) -> None:
    machine.user(0)
    machine.java(JAVA_11)
    machine.manager(manager, offers=package)
    machine.program(asked, f'case "$*" in *{package}) printf installed ;; *) exit 1 ;; esac')
    result = machine.run()
    assert result.returncode == 1
    assert f"{package} is installed already, and is not upgraded here." in result.stderr
    assert not any(call.startswith(INSTALL) or " -y" in call for call in machine.calls)
