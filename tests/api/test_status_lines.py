"""`agentbox status` and `agentbox health` of a real box: its exceptions, its deviations from the
plan, changes of the manifest, each on a line of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from helpers import until
from support.forked_program import run_command
from support.plans import SYSTEM, lock_of
from support.prefix_box import PrefixBox
from test_apply_to_agent_host import text
from test_supervised import TOKEN, Sealed

from agentbox.core.linux.procfs import start_ticks
from agentbox.host.engines.state import BoxRecord, BoxState
from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import parse
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock as lock_bytes
from agentbox.plan.model import SecurityExceptionPlan, VolumePlan

WIDER = SecurityExceptionPlan(
    key="telegram-mirror",
    reason="a test",
    volumes=(VolumePlan(source="t", target="/var/lib/agentbox/t"),),
)
KEY = "limits.fds"


@dataclass
class CliBox:
    """A box, and the manifest and state directory by which the command line finds it."""

    sealed: Sealed
    folder: Path

    def write(self, manifest: bytes) -> None:
        """On the host and in the box."""
        (self.folder / "agentbox.toml").write_bytes(manifest)
        self.sealed.box.paths.manifest.write_bytes(manifest)

    def lines(self, verb: str) -> dict[str, str]:
        """The output of the command: the rest of each line by its first words."""
        done = run_command(
            *("--manifest", str(self.folder / "agentbox.toml"), verb),
            env={**os.environ, "AGENTBOX_STATE_DIR": str(self.folder)},
        )
        assert "Traceback" not in done.stderr, done.stderr
        width = 20 if verb == "status" else 13
        return {line[:width].strip(): line[width:] for line in done.stdout.splitlines()}


@pytest.fixture
def cli_box(tmp_path: Path) -> Iterator[CliBox]:
    """The box has one exception, and checks for drift every three seconds."""
    with PrefixBox() as box:
        manifest, features = parse(text(), "agentbox.toml"), load_features()
        lock = lock_of(enabled_features(manifest, features))
        made = build_plan(manifest, features, lock_bytes(lock), lock, SYSTEM)
        plan = box.install(replace(made, probes=(), test_hooks=True, exceptions=(WIDER,)))
        box.paths.lock.write_bytes(lock_bytes(lock))
        (tmp_path / "agentbox.lock").write_bytes(lock_bytes(lock))
        found = CliBox(Sealed(box, plan), tmp_path)
        box.paths.baked_manifest.write_bytes(text())
        found.write(text())
        box.start({"BOX_TOKEN": TOKEN, "AGENTBOX_TEST_CLOCK_SCALE": "20"})
        box.wait_for_event("BootstrapCompleted")
        assert box.process is not None
        state = BoxState(tmp_path / "applied")
        state.make()
        state.save_token(TOKEN)
        root = state.directory / "root"  # where a box of this name is stored
        root.symlink_to(box.paths.prefix)
        state.save_record(
            BoxRecord(
                engine="process", name="applied", api_url=f"http://127.0.0.1:{plan.api.port}", root=str(root),
                pid=box.process.pid, start_ticks=start_ticks(box.process.pid), plan_digest=plan.digest, apply=dict(made.apply),
            )
        )  # fmt: skip
        yield found
        found.sealed.client.close()


def test_exceptions_and_drift_have_lines(cli_box: CliBox) -> None:
    """First the exception and no drift of the manifest; then, changed under the box, both verbs name the key."""
    status = cli_box.lines("status")
    assert (status["exceptions"], status["drift"]) == (WIDER.key, "none")
    assert "manifest: " not in status["posture drift"]
    health = cli_box.lines("health")
    assert health["exceptions"] == WIDER.key
    assert "manifest: " not in health["drift"]
    cli_box.write(text(limits="fds = 100"))
    assert cli_box.lines("status")["drift"] == KEY
    told = until(
        lambda: [
            one
            for one in [cli_box.lines("health")["drift"]]
            if f"manifest: live {KEY} (expected" in one
        ]
    )
    assert cli_box.lines("status")["posture drift"] == told[0].replace("; ", ", ")


def test_none_is_said_too(cli_box: CliBox) -> None:
    """A box that matches its plan, without exceptions, reports this in both."""
    cli_box.sealed.box.stop()
    cli_box.sealed.box.install(replace(cli_box.sealed.plan, exceptions=()))
    cli_box.sealed.box.paths.baked_manifest.write_bytes(text())
    cli_box.write(text())
    cli_box.sealed.box.start({"BOX_TOKEN": TOKEN})
    cli_box.sealed.box.wait_until(lambda: len(cli_box.sealed.box.events("BootstrapCompleted")) == 2)
    health = cli_box.lines("health")
    assert health["exceptions"] == "none (baseline)"
    assert health["drift"] == "none: the box matches its plan"
