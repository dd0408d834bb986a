"""`agentbox secrets`: stored values, which are never printed."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.host.engines.secrets import collect_secrets

VALUE = "a-value-that-nobody-sees-0123456789"
CHECKOUT = Path(__file__).resolve().parents[3]
MANIFEST = """
[meta]
schema_version = 1
name = "keyed"

[providers.openai]
enabled = true
env_var = "MODEL_KEY"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A manifest with its lock, and the state directory beside it."""
    (tmp_path / "agentbox.toml").write_text(MANIFEST)
    (tmp_path / "agentbox.lock").write_bytes((CHECKOUT / "agentbox.lock").read_bytes())
    return tmp_path


def agentbox(
    folder: Path, *words: str, stdin: bytes = b"", **env: str
) -> subprocess.CompletedProcess[bytes]:
    """One call of the real command."""
    here = {**os.environ, "AGENTBOX_STATE_DIR": str(folder / "state"), **env}
    return subprocess.run(
        [sys.executable, "-m", "agentbox", *words],
        cwd=folder,
        input=stdin,
        env=here,
        capture_output=True,
        check=False,
    )


def listed(folder: Path, **env: str) -> dict[str, str]:
    rows = json.loads(agentbox(folder, "--json", "secrets", "list", **env).stdout)
    return {row["name"]: row["source"] for row in rows}


def test_a_value_is_kept_listed_and_forgotten(folder: Path) -> None:
    """0600 in a 0700 directory; the environment and the `.env` have priority; no command shows the
    value."""
    assert listed(folder)["MODEL_KEY"] == ""
    done = agentbox(folder, "secrets", "set", "MODEL_KEY", stdin=VALUE.encode() + b"\n")
    assert done.returncode == 0, done.stderr
    kept = folder / "state/keyed/secrets"
    assert (kept / "MODEL_KEY").read_text() == VALUE
    assert stat.S_IMODE((kept / "MODEL_KEY").stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    shown = agentbox(folder, "secrets", "list")
    assert VALUE.encode() not in done.stdout + done.stderr + shown.stdout + shown.stderr
    assert listed(folder)["MODEL_KEY"] == "set"
    assert listed(folder, MODEL_KEY="x")["MODEL_KEY"] == "environment"
    assert collect_secrets(["MODEL_KEY"], folder / "agentbox.toml", kept) == {"MODEL_KEY": VALUE}
    (folder / ".env").write_text("MODEL_KEY=other\n")
    assert listed(folder)["MODEL_KEY"] == ".env"
    assert collect_secrets(["MODEL_KEY"], folder / "agentbox.toml", kept) == {"MODEL_KEY": "other"}
    assert agentbox(folder, "secrets", "remove", "MODEL_KEY").returncode == 0
    assert not (kept / "MODEL_KEY").exists()
    assert agentbox(folder, "secrets", "remove", "MODEL_KEY").returncode == 1


@pytest.mark.parametrize("value", [b"\n", b"change-me", b"\xff\xfe", b"x" * (65 << 10)])
def test_what_is_no_value_is_refused(folder: Path, value: bytes) -> None:
    """Exit 2, and nothing is stored."""
    done = agentbox(folder, "secrets", "set", "MODEL_KEY", stdin=value)
    assert done.returncode == 2
    assert not (folder / "state/keyed/secrets").exists()


def test_a_name_is_the_name_of_a_variable(folder: Path) -> None:
    """Neither a path nor an option; an unused name is reported."""
    for name in ("../token", "a b", ""):
        assert agentbox(folder, "secrets", "set", name, stdin=b"x").returncode == 2
    done = agentbox(folder, "secrets", "set", "NOBODY", stdin=b"some-value")
    assert done.returncode == 0
    assert b"no active key of the manifest" in done.stderr
    assert listed(folder)["NOBODY"] == "set"
