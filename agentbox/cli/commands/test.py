"""`agentbox test`: every suite, for real: real Nix builds, real containers, nothing that passes by skipping."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import click

from agentbox.canonical import file_sha256
from agentbox.cli.context import Cli
from agentbox.cli.stages.tools import install_test_tools
from agentbox.errors import AgentboxError, ExitCode
from agentbox.settings import CHECKOUT


@dataclass(frozen=True)
class Suite:
    """One part of the whole: commands run from the checkout, all of which must exit 0."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    options: tuple[str, ...] = ()
    containers: bool = False


_SHARED: Final = ("-n", "3", "--dist", "loadfile")
"""These tests mostly wait; a file's boxes and servers stay in one process."""


def _pytest(*folders: str) -> tuple[str, ...]:
    return ("-m", "pytest", "-q", *folders)


SUITES = (
    Suite("lint", (("-m", "ruff", "check", "."), ("-m", "ruff", "format", "--check", "."), ("-m", "mypy", "agentbox"))),
    Suite("unit", (_pytest(*_SHARED, "tests/unit", "tests/rules", "tests/golden", "tests/meta", "tests/api"),)),
    Suite("contract", (_pytest(*_SHARED, "tests/contract", "tests/mesh"),)),
    Suite("nix", (_pytest("tests/nix"),), containers=True),
    Suite("runtime", (_pytest("tests/runtime-contract"),), containers=True),
    Suite("features", (_pytest("tests/features"),), containers=True),
    Suite("stories", (_pytest("tests/stories"),)),
    Suite("e2e", (_pytest("tests/e2e"),), containers=True),
)


@click.command(name="test")
@click.argument("names", nargs=-1, type=click.Choice([suite.name for suite in SUITES] + ["all"]))
@click.option("--all", "every", is_flag=True, help="Suite features: try each, not only a small one, and keep the rows.")
@click.option("--feature", "some", multiple=True, metavar="NAME", help="Suite features: try this one; repeatable.")
@click.option("--container", is_flag=True, help="Suite stories: in a container too.")
@click.option("--yes", "-y", is_flag=True, help="Consent to installing the Debian packages that the suites need.")
@click.pass_obj
def command(cli: Cli, names: tuple[str, ...], every: bool, some: tuple[str, ...], container: bool, yes: bool) -> int:
    """Run the test suites NAMES (default: all). Exit 1 if one fails.

    lint: style, types, layers. unit: fast. contract: every adapter against its clauses, meshes. nix: builds. runtime: real
    boxes.
    features: a box with an optional feature, a small one (a minute) unless --all or --feature says which; --all takes some
    two hours and 15 GB of free disk, keeps each row as soon as it is known, and after Ctrl-C goes on where it was.
    stories: two agent CLIs of different makers, fetched by npm, at work in a box (a minute); --container builds an image
    with both and tells it all there, as root (six to ten minutes, 4 GB of free disk).
    e2e: the commands as an operator types them: a real package's own test suite, disasters, kills, interrupts.
    """
    chosen = [suite for suite in SUITES if suite.name in names or "all" in names or not names]
    more = {"features": _features(every, some), "stories": ("--container",) if container else ()}
    chosen = [replace(suite, options=more.get(suite.name, ())) for suite in chosen]
    _install_requirements()
    if any(suite.name != "lint" for suite in chosen):
        install_test_tools(cli, containers=container or any(suite.containers for suite in chosen), yes=yes)
    results = [_run(suite) for suite in chosen]
    for result in results:
        cli.out.line(f"{result.suite:<10} {'passed' if result.passed else 'FAILED':<8} {result.seconds:7.1f} s")
        for line in result.failed:
            cli.out.line(f"  {line}")
    cli.out.document([vars(result) for result in results])
    return ExitCode.DONE if all(result.passed for result in results) else ExitCode.BAD


def _features(every: bool, some: tuple[str, ...]) -> tuple[str, ...]:
    return (*(["--every-feature", "-vv"] if every else []), *(f"--feature={name}" for name in some))


@dataclass(frozen=True)
class Result:
    """What became of a suite; `failed` are its tests that did, each with the first line of why."""

    suite: str
    passed: bool
    seconds: float
    failed: list[str]


def _run(suite: Suite) -> Result:
    started = time.monotonic()
    calls = [[sys.executable, *words, *suite.options] for words in suite.commands]
    if suite.name == "lint":
        calls.append([str(Path(sys.executable).with_name("lint-imports"))])
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.xml"
        codes = [_ended([*call, *_reports(call, told)]) for call in calls]
        failed = _failed(told) if told.exists() else []
    return Result(suite.name, not any(codes), time.monotonic() - started, failed)


def _reports(call: Sequence[str], told: Path) -> tuple[str, ...]:
    return (f"--junit-xml={told}", "-o", "junit_family=xunit1") if "pytest" in call else ()


def _failed(told: Path) -> list[str]:
    """From pytest's report: they are to be found below a log of thousands of lines."""
    return [
        f"{case.get('file')}::{case.get('name')}: {(fault.get('message') or '').partition(chr(10))[0]}"
        for case in ElementTree.parse(told).iter("testcase")
        for fault in (*case.findall("failure"), *case.findall("error"))
    ]


def _ended(call: Sequence[str]) -> int:
    """The exit code. The suite has a session of its own: whatever interrupts this command interrupts all of the suite
    once, which then removes its boxes, and is waited for."""
    interrupted = False
    suite = subprocess.Popen(call, cwd=CHECKOUT, start_new_session=True)
    while True:
        try:
            code = suite.wait()
        except KeyboardInterrupt:
            interrupted = True
            os.killpg(suite.pid, signal.SIGINT)
        else:
            break
    if interrupted:
        raise KeyboardInterrupt
    return code


def _install_requirements() -> None:
    """Adds `requirements.test` to the virtual environment once; the stamp is the file's hash."""
    wanted = CHECKOUT / "requirements.test"
    stamp = Path(sys.prefix) / ".requirements-test.sha256"
    if stamp.exists() and stamp.read_text() == file_sha256(wanted):
        return
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    done = subprocess.run([*argv, "--require-hashes", "--only-binary", ":all:", "-r", str(wanted)], check=False)
    if done.returncode != 0:
        raise AgentboxError(
            "cannot install the test requirements: pip failed (above)",
            "Connect to the package index.",
            exit_code=ExitCode.FETCH,
        )
    stamp.write_text(file_sha256(wanted))
