"""The table of the battery, how a reply is judged, and the archive that an agent runs."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.doctor import attack_archive
from agentbox.host.doctor.attack_results import case_result
from agentbox.sandbox.attacks.attempts import run_attempt, run_each, syscall, worst
from agentbox.sandbox.attacks.case import (
    ABSENT,
    DEFAULT_LIMITS,
    EDITIONS,
    LAYERS,
    PASSED,
    AttackCase,
    TargetInfo,
    VictimAgent,
)
from agentbox.sandbox.attacks.catalogue import CASES, CASES_BY_NAME


def test_every_line_names_its_layers_and_tests() -> None:
    """Layers are known ones, names are unique, and each named test exists."""
    assert len(CASES) >= 70
    assert len(CASES_BY_NAME) == len(CASES)
    for line in CASES:
        assert line.blocked_by, line.name
        assert set(line.blocked_by.values()) <= set(LAYERS), line.name
        assert PASSED not in line.blocked_by
        assert line.tests, line.name
        for test in line.tests:
            path, _, name = test.partition("::")
            assert f"def {name}(" in (CHECKOUT / path).read_text(), test


def outcome(line: AttackCase, reply: str) -> str:
    return case_result(line, {line.name: reply}).state


@pytest.mark.parametrize("line", CASES, ids=lambda line: line.name)
def test_only_a_known_reply_is_good(line: AttackCase) -> None:
    """A passed attack is bad; one that was not tried, has no target or an unknown reply is unknown,
    and fails the command."""
    assert all(outcome(line, reply) == "good" for reply in line.blocked_by)
    assert outcome(line, PASSED) == "bad"
    assert outcome(line, f"{ABSENT}nothing") == "unknown"
    assert outcome(line, "EXFULL") == "unknown"
    assert case_result(line, {}).state == "unknown"


def test_the_edition_of_a_line_is_shown() -> None:
    """To programs of each line, to people of those that the first edition did not have."""
    assert {line.since for line in CASES} == set(EDITIONS)
    for line in CASES:
        row = case_result(line, {})
        assert row.to_wire()["facts"]["since"] == line.since
        assert row.message.endswith(f"[edition {line.since}]") == (line.since > 1)


def test_facts_cross_the_wire() -> None:
    """Unchanged; members that a newer caller adds are ignored."""
    facts = TargetInfo(neighbour=VictimAgent(pid=7, home="/x"), secrets=("/a",), ports=(1, 2))
    assert TargetInfo.from_json({**json.loads(json.dumps(facts.to_json())), "newer": 1}) == facts


def test_an_agent_of_a_line_may_have_less_and_never_more() -> None:
    """A flood exceeds the limit of its own agent."""
    box = TargetInfo(limits={"memory": 1000, "pids": 8})
    assert box.lowered({"memory": 400}).limits == {"memory": 400, "pids": 8}
    assert box.lowered({"memory": 4000}) == box
    assert TargetInfo().lowered({"memory": 400}).above_limit("memory") == 501
    assert all(
        set(line.lower) <= set(DEFAULT_LIMITS) and (line.isolated or not line.lower)
        for line in CASES
    )


def test_tries(tmp_path: Path) -> None:
    """Passed and refused attempts are reported by name; one that passed among many is the worst."""
    assert run_attempt(int) == PASSED
    assert run_attempt(Path("/none").stat) == "ENOENT"
    assert worst(["EACCES", PASSED, "EPERM"]) == PASSED
    assert run_each(lambda _path: None, [str(tmp_path)]) == PASSED
    assert syscall("ptrace", 0x4206, -1, 0, 0) in ("ESRCH", "EPERM", "EACCES")


def test_the_archive_stands_alone() -> None:
    """Isolated, without this checkout or any package, it tries a line; and it is the same twice."""
    assert attack_archive.build_archive() == attack_archive.build_archive()
    names = zipfile.ZipFile(io.BytesIO(attack_archive.build_archive())).namelist()
    assert all(name.startswith("agentbox/") for name in names)
    words = attack_archive.attack_argv(
        json.dumps(TargetInfo().to_json()), "files.init-environment", "files.secrets"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", *words[2:]], input=attack_archive.build_archive(), capture_output=True, check=False, cwd="/"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {row["case"]: row["reply"] for row in map(json.loads, done.stdout.splitlines())}
    assert found["files.secrets"] == f"{ABSENT}no target"
    assert set(found) == {"files.init-environment", "files.secrets"}
