"""The table of the battery, how a reply is judged, and the archive that an agent runs."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.doctor import bundle
from agentbox.host.doctor.attacking import judged
from agentbox.sandbox.attacks.attempts import call, each, tried, worst
from agentbox.sandbox.attacks.catalogue import BY_NAME, LINES
from agentbox.sandbox.attacks.line import ABSENT, EDITIONS, LAYERS, MOST, PASSED, Facts, Line, Neighbour


def test_every_line_names_its_layers_and_tests() -> None:
    """Layers are known ones, names are unique, and each named test exists."""
    assert len(LINES) >= 70
    assert len(BY_NAME) == len(LINES)
    for line in LINES:
        assert line.answers, line.name
        assert set(line.answers.values()) <= set(LAYERS), line.name
        assert PASSED not in line.answers
        assert line.tests, line.name
        for test in line.tests:
            path, _, name = test.partition("::")
            assert f"def {name}(" in (CHECKOUT / path).read_text(), test


def outcome(line: Line, reply: str) -> str:
    return judged(line, {line.name: reply}).state


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_only_a_known_reply_is_good(line: Line) -> None:
    """What passed is bad; what was not tried, what is not there and what nobody gives is unknown, and fails the command."""
    assert all(outcome(line, reply) == "good" for reply in line.answers)
    assert outcome(line, PASSED) == "bad"
    assert outcome(line, f"{ABSENT}nothing") == "unknown"
    assert outcome(line, "EXFULL") == "unknown"
    assert judged(line, {}).state == "unknown"


def test_the_edition_of_a_line_is_shown() -> None:
    """To programs of each line, to people of those that the first edition did not have."""
    assert {line.since for line in LINES} == set(EDITIONS)
    for line in LINES:
        row = judged(line, {})
        assert row.to_wire()["facts"]["since"] == line.since
        assert row.said.endswith(f"[edition {line.since}]") == (line.since > 1)


def test_facts_cross_the_wire() -> None:
    """As they were; what a newer caller knows more is left out."""
    facts = Facts(neighbour=Neighbour(pid=7, home="/x"), secrets=("/a",), ports=(1, 2))
    assert Facts.from_json({**json.loads(json.dumps(facts.to_json())), "newer": 1}) == facts


def test_an_agent_of_a_line_may_have_less_and_never_more() -> None:
    """A flood goes past what its own agent has."""
    box = Facts(limits={"memory": 1000, "pids": 8})
    assert box.lowered({"memory": 400}).limits == {"memory": 400, "pids": 8}
    assert box.lowered({"memory": 4000}) == box
    assert Facts().lowered({"memory": 400}).just_over("memory") == 501
    assert all(set(line.lower) <= set(MOST) and (line.alone or not line.lower) for line in LINES)


def test_tries(tmp_path: Path) -> None:
    """What passes and what is refused is told by name; one that passed among many is the worst."""
    assert tried(int) == PASSED
    assert tried(Path("/none").stat) == "ENOENT"
    assert worst(["EACCES", PASSED, "EPERM"]) == PASSED
    assert each(lambda _path: None, [str(tmp_path)]) == PASSED
    assert call("ptrace", 0x4206, -1, 0, 0) in ("ESRCH", "EPERM", "EACCES")


def test_the_archive_stands_alone() -> None:
    """Isolated, without this checkout or any package, it tries a line; and it is the same twice."""
    assert bundle.archive() == bundle.archive()
    names = zipfile.ZipFile(io.BytesIO(bundle.archive())).namelist()
    assert all(name.startswith("agentbox/") for name in names)
    words = bundle.argv(json.dumps(Facts().to_json()), "files.init-environment", "files.secrets")
    done = subprocess.run(
        [sys.executable, "-I", "-S", *words[2:]], input=bundle.archive(), capture_output=True, check=False, cwd="/"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {row["line"]: row["reply"] for row in map(json.loads, done.stdout.splitlines())}
    assert found["files.secrets"] == f"{ABSENT}nothing to try it on"
    assert set(found) == {"files.init-environment", "files.secrets"}
