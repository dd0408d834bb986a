"""Unmodified agent CLIs work for an unmodified client of the Agent Client Protocol: `acpx` starts
`agentbox acp`, and the agent speaks the protocol in a box, with its preset.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import acp_peers
import pytest
from clis import AGENTS, CLAUDE, END, Agent, place_acp
from support.model_server import ModelServer
from support.session_box import SessionBox
from terminal import Session

from agentbox.core.paths import CHECKOUT

KEY = "operator-" + "0123456789abcdef" * 3
SOURCE = "def add(a, b):\n    return a - b\n"
TEST = 'from sums import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint("tests pass")\n'
PAGE = CHECKOUT / "docs/stories/editor-acpx.txt"
MANIFEST = """
[acp]
initialize_seconds = 300 # agents yield to all other programs of the machine
new_seconds = 300

[providers.models]
enabled = true
kind = "KIND"
base_url = "BASE"
env_var = "MODEL_KEY"

[agents.coder]
command = COMMAND
protocol = "acp"
preset = "PRESET"
provider = "models"
"""


@pytest.fixture
def record(request: pytest.FixtureRequest) -> bool:
    """Whether the session is written to docs/stories."""
    return bool(request.config.getoption("--record", default=False))


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short name: the path of a unix socket has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="abx-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


class Story:
    """A box with one agent and a repository as its workspace, and the terminal of its operator."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        prefix = folder / "box"
        self.repo = prefix / "workspace"
        self.repo.mkdir(parents=True)
        program = place_acp(agent, prefix / "opt/agentbox/npm")
        for name, text in (("sums.py", SOURCE), ("test_sums.py", TEST)):
            (self.repo / name).write_text(text)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
            identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
            subprocess.run(["git", *identity, *words], cwd=self.repo, check=True)
        self._manifest = (
            MANIFEST.replace("KIND", agent.kind).replace("BASE", agent.base)
            .replace("COMMAND", json.dumps(program)).replace("PRESET", agent.preset)
        )  # fmt: skip
        self._prefix, self._home = prefix, folder / "home"
        self.server = ModelServer(reply=agent.say(prefix / "run/secrets/MODEL_KEY"), key=KEY)

    @contextmanager
    def open(self) -> Iterator[SessionBox]:
        secrets = {"MODEL_KEY": KEY}
        with (
            self.server,
            SessionBox(
                self._prefix, self.server.url, self._manifest, secrets, memory=2 << 30
            ) as box,
        ):
            yield box

    def terminal(self, box: SessionBox) -> Session:
        """The operator in the repository; `acpx` knows the box by the name `agentbox`."""
        words, environment = acp_peers.acpx(self._home, box.words("acp"))
        environment = {**environment, "AGENTBOX_STATE_DIR": str(box.operator / "state")}
        functions = {"agentbox": box.words(), "acpx": words}
        shell = "".join(
            f'{name}() {{ {" ".join(map(repr, words))} "$@"; }}\n'
            for name, words in functions.items()
        )
        return Session(self.repo, environment, shell=shell)


@pytest.mark.timeout(800)  # seconds; opencode takes 20 s of CPU, and agents yield to all others
@pytest.mark.sampled(4)
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_client_of_acp_has_a_test_fixed(agent: Agent, folder: Path, record: bool) -> None:
    """Prompt, tool calls, permissions, edit, end; the change is in the repository when the operator
    commits it, what the model was asked is counted for the session, and the key is nowhere."""
    story = Story(agent, folder)
    with story.open() as box:
        terminal = story.terminal(box)
        shown = terminal.type(
            'acpx --approve-all agentbox exec "Mend the failing test."', seconds=560
        )
        assert END in shown
        assert (story.repo / "sums.py").read_text() == SOURCE  # the change is in its branch
        (session,) = box.client.sessions.list().items
        listed = terminal.type("agentbox session list")
        assert session.session_id in listed
        used = terminal.type("agentbox usage --by session")
        assert session.session_id in used
        (row,) = box.client.usage.report(by="session").items
        assert (row.key, row.calls) == (session.session_id, len(story.server.requests))
        session = box.client.sessions.show(session.session_id)  # a last call may have come since
        assert session.models is not None
        assert (session.models.calls, session.models.input_tokens) == (row.calls, row.input_tokens)
        closed = terminal.type(f"agentbox session close {session.session_id}")
        assert session.sandbox_id in closed
        page = box.client.reviews.show(session.sandbox_id)
        assert "sums.py" in [change.path for change in page.changes]
        assert "+ b" in terminal.type(f"agentbox review show {session.sandbox_id}")
        box.client.reviews.commit(session.sandbox_id, page.summary.digest)
        assert (story.repo / "sums.py").read_text() == SOURCE.replace("a - b", "a + b")
        said = str([request.body for request in story.server.requests])
        assert "tests pass" in said
        assert "MODEL_KEY: Permission denied" in said
        assert KEY not in said + terminal.text
        if record and agent is CLAUDE:
            PAGE.write_text(in_a_container(terminal.page(), folder / "box"))


def in_a_container(text: str, prefix: Path) -> str:
    """The paths of a box that has its own root; the CLI writes one also with other separators."""
    mangled = str(prefix).replace("/", "-").replace("_", "-")
    return text.replace(str(prefix), "").replace(mangled, "")
