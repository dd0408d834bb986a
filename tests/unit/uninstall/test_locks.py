"""An uninstallation and commands that change a box exclude each other; boxes do not."""

from pathlib import Path

import pytest

from agentbox.core.errors import AgentboxError
from agentbox.host.engines.root_lock import root_lock
from agentbox.host.engines.state import BoxState


def test_no_box_is_changed_or_made_during_an_uninstallation(tmp_path: Path) -> None:
    """Also one that did not exist when the locks were taken."""
    one, two = BoxState(tmp_path / "one"), BoxState(tmp_path / "two")
    busy = "another agentbox command is running"
    with (
        one.exclusive_lock(with_root=False),
        root_lock(tmp_path, exclusive=True),
        pytest.raises(AgentboxError, match=busy),
        two.exclusive_lock(),
    ):
        pass
    with (
        one.exclusive_lock(),
        two.exclusive_lock(),
        pytest.raises(AgentboxError, match=busy),
        root_lock(tmp_path, exclusive=True),
    ):
        pass
    with root_lock(tmp_path, exclusive=True):
        assert (tmp_path / "root.lock").exists()
