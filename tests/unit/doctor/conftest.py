"""A host whose folders are the test's own."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentbox.host.doctor.host import Host
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.state import BoxState
from agentbox.plan.model import Port
from agentbox.testing.api_box import api_plan


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A box that was never started, of the process engine; state and cache below the test's folder."""
    monkeypatch.setenv("AGENTBOX_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("AGENTBOX_CACHE_DIR", str(tmp_path / "cache"))
    state = BoxState(tmp_path / "state/test")
    state.make()
    plan = api_plan()
    port = Port(owner="api.port", name="api", port=plan.api.port, publish="127.0.0.1")
    return Host(plan=replace(plan, ports=(port,)), state=state, engine=ProcessEngine())
