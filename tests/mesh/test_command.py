"""`agentbox mesh` against real boxes, as a user's shell sees it."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from helpers import until
from meshes import Start
from support.api_box import TOKEN, ApiBox
from support.forked_program import run_command
from support.mesh import client_plan, host_plan

from agentbox.host.engines.state import BoxRecord, BoxState

Call = Callable[..., subprocess.CompletedProcess[str]]


def shell(box: ApiBox, directory: Path) -> Call:
    """The command line for that box."""
    directory.mkdir()
    manifest = directory / "agentbox.toml"
    manifest.write_text('[meta]\nschema_version = 1\nname = "mesh-of-a-test"\n')
    state = BoxState(directory / "state" / "mesh-of-a-test")
    state.make()
    state.save_record(
        BoxRecord(
            engine="docker", name="mesh-of-a-test", api_url=box.url, folder=str(state.compose_dir)
        )
    )
    state.token_file.write_text(TOKEN)
    env = {**os.environ, "AGENTBOX_STATE_DIR": str(directory / "state")}
    words = ("--manifest", str(manifest))
    return lambda *given: run_command(*words, *given, env=env, timeout=60)


def test_both_sides_are_shown(start: Start, tmp_path: Path) -> None:
    """State, host and slots of a client; sessions of a host; an empty outbox; what cannot be is one sentence."""
    host = start(host_plan())
    box = start(client_plan(host.url), wait=False)
    here, there = shell(box, tmp_path / "b"), shell(host, tmp_path / "a")
    result = until(
        lambda: (
            (output := json.loads(here("--json", "mesh", "status").stdout))["state"] == "active"
            and output
        ),
        20,
    )
    lines = here("mesh", "status").stdout.splitlines()
    assert lines[0] == "client: active"
    assert lines[1:] == [
        f"host {host.url}, session {result['session_id']}, instance {result['instance_id']}", f"beads  {host.url}",
    ]  # fmt: skip
    assert there("mesh", "status").stdout.startswith(
        f"host: hosting\n{result['session_id']}  instance {result['instance_id']}"
    )
    assert here("mesh", "join").stdout == "client: active\n"
    assert (here("mesh", "outbox", "list").stdout, here("mesh", "outbox", "list").returncode) == (
        "",
        0,
    )
    for refused in (here("mesh", "outbox", "drop", "1"), there("mesh", "join")):
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr
