"""Programs of a box with sessions are killed, and start again as supervisord starts them."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentbox.sandbox.launcher import tree
from support.acp_editor import AcpEditor
from support.session_box import SessionBox

VICTIMS = ("agent", "session-host", "agent-host", "api")


class PatientEditor(AcpEditor):
    """Its user answers questions when told to."""

    def _answer(self, message: Mapping[str, Any]) -> None:
        assert message["method"] == "session/request_permission"

    def answer_now(self) -> None:
        """The newest one."""
        super()._answer(self.asked[-1])

    def start(self, method: str, **params: Any) -> int:
        """The number of the call."""
        return self._send_call(method, params)


def kill(box: SessionBox, victim: str) -> None:
    """SIGKILL, and a new start, but for an agent. Agents are known by the last word of their
    command, `--load` or `--resume`."""
    host = box.api.host
    assert host is not None
    if victim == "session-host":
        box.kill_session_host()
        box.start_session_host()
    elif victim == "agent-host":
        host.kill()
        host.start()
    elif victim == "api":
        box.api.kill()
        box.api.start()
    else:
        ends = (b"--load\0", b"--resume\0")
        agents = [
            one.pid
            for one in tree.quick_descendants(host.pid)
            if Path(f"/proc/{one.pid}/cmdline").read_bytes().endswith(ends)
        ]
        assert agents
        for pid in agents:
            os.kill(pid, signal.SIGKILL)


def told(box: SessionBox, session: str) -> str:
    """What the agent said, by the transcript."""
    items: Any = box.client.sessions.transcript(session, limit=500).items
    return "".join(
        item.data["content"]["text"]
        for item in items
        if item.kind == "update" and item.data["sessionUpdate"] == "agent_message_chunk"
    )
