"""A context with temporary state and cache directories."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.api_box import api_plan

from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.engines.process.process import ProcessEngine
from agentbox.host.engines.state import BoxState
from agentbox.plan.model import Port


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckContext:
    """A process-engine box that was never started."""
    monkeypatch.setenv("AGENTBOX_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("AGENTBOX_CACHE_DIR", str(tmp_path / "cache"))
    state = BoxState(tmp_path / "state/test")
    state.make()
    plan = api_plan()
    port = Port(owner="api.port", name="api", port=plan.api.port, publish="127.0.0.1")
    return CheckContext(plan=replace(plan, ports=(port,)), state=state, engine=ProcessEngine())
