"""Twenty sessions at once, over the API: each has its own agent, branch and transcript."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.instructed_agent import SCRIPT
from support.session_box import SessionBox

from agentbox.client import ApiError

COUNT = 20
MANIFEST = f"""
[acp]
max_sessions = {COUNT}
initialize_seconds = 120
new_seconds = 120

[agents.scripted]
command = ["python3", "-c", {json.dumps(SCRIPT)}]
protocol = "acp"
"""


@pytest.fixture(scope="module")
def box() -> Iterator[SessionBox]:
    folder = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    with SessionBox(folder, "", MANIFEST, {}) as running:
        yield running
    shutil.rmtree(folder)


def transcript(box: SessionBox, session: str) -> str:
    """What its agent said."""
    items: Any = box.client.sessions.transcript(session, limit=500).items
    return "".join(item.data["content"]["text"] for item in items if item.kind == "update")


@pytest.mark.timeout(180)
def test_twenty_at_once(box: SessionBox) -> None:
    """All prompts are answered, nobody has words or files of another, and there is no room for one
    more until one is closed."""

    def open_one(number: int) -> str:
        with box.api.client() as client:
            return client.sessions.create(agent="scripted", name=f"s{number}").session_id

    def work(session: str) -> str:
        with box.api.client() as client:
            text = f"burst 30\nwrite own.txt {session}\nread own.txt"
            done = client.sessions.prompt(session, text, wait_s=55)
            assert done.stop_reason == "end_turn"
            return done.text

    with ThreadPoolExecutor(COUNT) as pool:
        sessions = list(pool.map(open_one, range(COUNT)))
        assert len(set(sessions)) == COUNT
        with pytest.raises(ApiError) as full:
            open_one(COUNT)
        assert full.value.code == "sessions-full"
        said = list(pool.map(work, sessions))
        numbers = "".join(f"{number} " for number in range(30))
        for session, text in zip(sessions, said, strict=True):
            assert text == f'{numbers}{{}}\n{{"content": "{session}"}}\n'
            assert transcript(box, session) == text
        box.client.sessions.close(sessions.pop())
        sessions.append(open_one(COUNT))
        sandboxes = [box.client.sessions.show(session).sandbox_id for session in sessions]
        list(pool.map(box.client.sessions.close, sessions))
    for session, sandbox_id in zip(sessions[:-1], sandboxes[:-1], strict=True):
        diff = json.dumps(box.client.reviews.show(sandbox_id).to_wire())
        assert session in diff
        assert not [other for other in sessions if other != session and other in diff]
