"""RC-018: an exception without its feature is E020; a feature without its exception E201 or W021;
an unacknowledged exception E202. Each ends the command that would act on the manifest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_rc_017_exceptions_only_add import FEATURES, GATES

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.load import parse
from agentbox.manifest.rules.engine import run_rules

REQUIRED, WIDENING = {"gpu-cuda", "gpu-rocm"}, {"gpu-cuda", "gpu-rocm"}
BASE = "meta = { schema_version = 1 }\n"
WIDER = """\
skills = { browser = { playwright = true } }
[security.exceptions.playwright]
reason = "a page asks for raw sockets"
cap_add = ["NET_RAW"]
"""


def codes(text: str) -> set[str]:
    """The findings about this subject with one feature per gate."""
    manifest = parse((BASE + text).encode(), "agentbox.toml")
    assert manifest.findings == (), manifest.findings
    found = {finding.code for finding in run_rules(manifest, features=FEATURES).findings}
    return found & {"E020", "E201", "E202", "W021"}


def block(key: str, *, acknowledged: bool = False) -> str:
    parents = ", gpu-cuda = {}" if key == "gaussian-splatting" else ""
    return f"security = {{ audit_acknowledged = {str(acknowledged).lower()}, exceptions = {{ {key} = {{}}{parents} }} }}\n"


def validate(folder: Path, text: str) -> tuple[int, set[str]]:
    """Exit code and codes of the command line, with the features of this release."""
    file = folder / "agentbox.toml"
    file.write_text(BASE + text)
    argv = [
        sys.executable,
        "-m",
        "agentbox",
        "--manifest",
        str(file),
        "config",
        "validate",
        "--format",
        "json",
    ]
    done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    found = {row["code"] for row in json.loads(done.stdout)["findings"]}
    return done.returncode, found - {"W502"}  # there is no lock beside it


@pytest.mark.parametrize("key", GATES)
def test_rc_018_orphan_block(key: str) -> None:
    """E020, whatever else is set; no block, no finding."""
    assert "E020" in codes(block(key))
    assert codes("") == set()


@pytest.mark.parametrize("key", GATES)
def test_rc_018_missing_block(key: str) -> None:
    """E201 where the feature cannot run without, W021 where it is advised; with the block neither."""
    gate = GATES[key] + "\n"
    assert ("E201" if key in REQUIRED else "W021") in codes(gate)
    assert codes(gate + block(key)) <= {"E202"}


@pytest.mark.parametrize("key", GATES)
def test_rc_018_acknowledgement(key: str) -> None:
    """E202 exactly where something widens, until it is acknowledged."""
    gate = GATES[key] + "\n"
    widens = key in WIDENING or key == "gaussian-splatting"
    assert codes(gate + block(key)) == ({"E202"} if widens else set())
    assert codes(gate + block(key, acknowledged=True)) == set()


def test_rc_018_the_command_refuses(tmp_path: Path) -> None:
    """`config validate` ends with 1 for an orphan and for an unacknowledged exception; with 0 once
    it is acknowledged."""
    assert validate(tmp_path, "") == (0, set())
    code, found = validate(tmp_path, "[security.exceptions.desktop]\n")
    assert (code, found) == (1, {"E020"})
    code, found = validate(tmp_path, WIDER)
    assert (code, "E202" in found) == (1, True)
    code, found = validate(
        tmp_path, WIDER.replace("[security", "[security]\naudit_acknowledged = true\n[security")
    )
    assert (code, found) == (0, {"I204"})
