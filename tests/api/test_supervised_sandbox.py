"""Canaries in a real box below a prefix: what `/ready` reports about the sandbox, by real agents'
sandboxes."""

import os
import signal
from dataclasses import replace
from typing import Any

from helpers import until
from test_supervised import Sealed, plan, started

from agentbox.agents.canaries import WEAK_HOOK


def journalled(running: Sealed) -> list[dict[str, Any]]:
    """What the journal has about the sandbox."""
    return list(running.client.call("read_events", query={"types": "sandbox.*"})["events"])


def test_a_sandbox_that_does_not_hold_unreadies_the_box() -> None:
    """The next canary names the rule, agents and slots continue, the journal has both changes; once
    fixed, the box is ready again in the same boot. A kill of agent-host during the failure adds no
    event about the sandbox."""
    with started(replace(plan(), test_hooks=True)) as running:
        before = running.client.ready()
        hook = running.box.paths.run / WEAK_HOOK
        hook.write_text("read")
        until(lambda: running.client.ready().missing == ("sandbox:read not enforced",))
        hook.unlink()
        until(running.ready)
        assert running.client.ready().boot_id == before.boot_id
        told = until(
            lambda: len(found := journalled(running)) >= 2 and found
        )  # after it has followed the record
        assert [(one["type"], one["agent_id"]) for one in told] == [
            ("sandbox.failed", None),
            ("sandbox.proven", None),
        ]
        os.kill(running.pid("agent-host"), signal.SIGKILL)
        fallen = until(lambda: running.client.ready().missing)
        assert not [text for text in fallen if text.startswith("sandbox:")]
        until(running.ready)
