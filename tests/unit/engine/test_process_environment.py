"""Environment of the boot under the process engine."""

import sys
from pathlib import Path

import pytest
from support.plans import plan_of

from agentbox.core.paths import Paths
from agentbox.host.cli.stages.start import UpOptions, origin_digest
from agentbox.host.engines.base import StartSpec
from agentbox.host.engines.process.booting import boot_environment
from agentbox.host.engines.process.box_files import write_box_files
from agentbox.host.engines.state import BoxState
from agentbox.plan.names import HOME


def test_only_what_the_plan_names_is_passed_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only variables that are set; values of the plan override the operator's environment."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("OTHER", "x")
    monkeypatch.setenv("AGENTBOX_LOG_LEVEL", "trace")
    monkeypatch.delenv("UNSET", raising=False)
    plan = plan_of(
        '[agents.x]\ncommand = ["x"]\nenv = ["TZ", "UNSET", "AGENTBOX_LOG_LEVEL"]\nenabled = false\n'
    )
    found = boot_environment(
        Paths(tmp_path), StartSpec(plan=plan, manifest=b"", state=BoxState(tmp_path / "state"))
    )
    assert (found["TZ"], found["AGENTBOX_LOG_LEVEL"], found["AGENTBOX_STRICT"]) == (
        "UTC",
        "info",
        "0",
    )
    assert not {"OTHER", "UNSET"} & set(found)
    assert found["HOME"] == str(Paths(tmp_path).resolve(HOME)), "agents write the workspace"


def test_a_box_runs_the_environment_that_started_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of another checkout, which started the box of this name before; the box is
    recreated.
    """
    wanted = StartSpec(plan=plan_of(""), manifest=b"", state=BoxState(tmp_path / "state"))
    made = []
    for name in ("one", "two"):
        monkeypatch.setattr(sys, "prefix", str(tmp_path / name))
        write_box_files(Paths(tmp_path / "root"), wanted)
        assert Paths(tmp_path / "root").venv.readlink() == tmp_path / name
        made.append(origin_digest(None, UpOptions()))
    assert made[0] != made[1]
