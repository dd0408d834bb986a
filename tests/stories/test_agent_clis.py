"""Unmodified agent CLIs with their presets fix a real repository in a box: through the gateway,
without the key, within a budget."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import key_search
import pytest
from clis import AGENTS, END, OPENCODE, TASK, Agent, place
from support.model_server import ModelServer
from support.model_turns import ModelTurn
from support.skills_box import install_skills
from support.story_box import StoryBox

from agentbox.client.sync.agents import AgentsClient
from agentbox.core.paths import Paths

ENDING = tuple(agent for agent in AGENTS if agent is not OPENCODE)
"""Those that end when the budget does: opencode waits as long as `retry-after` says, a day here."""
KEY = "operator-" + "0123456789abcdef" * 3
SKILL, SKILL_DESCRIPTION = "sum-checker", "Checks sums by hand. Use it when a total looks wrong."
SKILL_TEXT = f"""---
name: {SKILL}
description: {SKILL_DESCRIPTION}
---
# Check a sum

Add the numbers again, from the last to the first.
"""
SOURCE = "def add(a, b):\n    return a - b\n"
TEST = 'from sums import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint("tests pass")\n'
MANIFEST = """
[egress]
allow = ["docs.example.org"]

[policies.netted]
base = "sandboxed"
[[policies.netted.net]]
mode = "allow"
patterns = ["docs.example.org"]

[providers.models]
enabled = true
kind = "KIND"
base_url = "BASE"
env_var = "MODEL_KEY"

[agents.coder]
command = COMMAND
preset = "PRESET"
provider = "models"
profile = "netted"
llm.max_tokens = TOKENS
"""


class Story:
    """A box with one agent, a repository as its workspace, and the requests to the model."""

    def __init__(self, agent: Agent, folder: Path, tokens: int) -> None:
        self.prefix, self.repo = folder / "box", folder / "box/workspace"
        self.repo.mkdir(parents=True)
        program = place(agent, self.prefix / "opt/agentbox/npm")
        skill = folder / "skills" / SKILL
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL_TEXT)
        install_skills(Paths(self.prefix), {SKILL: skill})
        for name, text in (("sums.py", SOURCE), ("test_sums.py", TEST)):
            (self.repo / name).write_text(text)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
            subprocess.run(
                ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
                cwd=self.repo,
                check=True,
            )
        self.manifest = (
            MANIFEST.replace("KIND", agent.kind).replace("BASE", agent.base).replace("TOKENS", str(tokens))
            .replace("COMMAND", agent.command(*program)).replace("PRESET", agent.preset)
        )  # fmt: skip
        self.found: list[key_search.Found] = []
        script = agent.say(self.prefix / "run/secrets/MODEL_KEY")

        def say(spoken: int, body: Mapping[str, Any]) -> ModelTurn:
            said = script(spoken, body)
            if (
                not said.tool_uses
            ):  # the agent waits for its last answer: what it has in memory, it has now
                self.search()
            return said

        self.server = ModelServer(reply=say, key=KEY)

    @contextmanager
    def open(self) -> Iterator[StoryBox]:
        with (
            self.server,
            StoryBox(
                self.prefix, self.server.url, self.manifest, {"MODEL_KEY": KEY}, memory=2 << 30
            ) as box,
        ):
            self.box = box
            yield box

    def run(self, agents: AgentsClient) -> Any:
        return agents.run_once({"name": "coder", "agent": "coder"}, stdin=TASK, timeout_s=700)

    def search(self) -> None:
        """Environment and writable memory of every process of the agent."""
        self.found.append(key_search.search(self._processes(), KEY.encode()))

    def _processes(self) -> Iterator[Path]:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                around = (process / "environ").read_bytes()
                if b"AGENTBOX_TOKEN=" in around and str(self.prefix).encode() in around:
                    yield process

    def files_with_key(self) -> set[str]:
        """Everything below the box, without the secret itself. What is removed meanwhile, such as
        an ended agent's own directory, is left out."""
        found = set()
        for folder, _, names in os.walk(self.prefix):
            for path in (
                Path(folder, name)
                for name in names
                if Path(folder) != self.box.paths.mounted_secrets
            ):
                with suppress(FileNotFoundError):
                    if (
                        path.is_file()
                        and path.stat().st_size < 64 << 20
                        and KEY.encode() in path.read_bytes()
                    ):
                        found.add(str(path))
        return found


def denied(box: StoryBox, layer: str, rule: str) -> Any:
    """The agent, once that refusal is counted: it reaches agent-host a moment after the agent has its answer. Raises
    AssertionError."""
    end = time.monotonic() + 20
    while (
        not (one := box.client.agents.list(name="coder").items[0]).denials.get(layer, {}).get(rule)
    ):
        assert time.monotonic() < end, one.denials
        time.sleep(0.05)
    return one


@pytest.mark.timeout(900)  # seconds; opencode takes 20 s of CPU, and agents yield to all others
@pytest.mark.sampled(2)
@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_it_reads_edits_tests_and_ends_without_ever_having_the_key(
    agent: Agent, tmp_path: Path
) -> None:
    """The key is in no file, no memory and no output; two attempts to reach another host are
    refused and counted. It knows the skills of the box. The change is in the repository when the operator commits it."""
    story = Story(agent, tmp_path, 1_000_000)
    with story.open() as box:
        ran = story.run(box.client.agents)
        assert ran.exit.code == 0, ran
        assert END.encode() in ran.stdout
        assert (story.repo / "sums.py").read_text() == SOURCE  # the change is in its branch
        said = str([request.body for request in story.server.requests])
        assert "tests pass" in said
        assert "HTTP Error 403" in said  # through the proxy
        assert "PermissionError" in said  # past it
        assert "MODEL_KEY: Permission denied" in said
        assert {request.key for request in story.server.requests} == {KEY}
        # Listed unasked, from the links in its HOME: the repository and the task name no skill.
        turns = [request.body for request in story.server.requests if request.body.get("tools")]
        assert SKILL in json.dumps(turns[0])
        assert SKILL_DESCRIPTION in json.dumps(turns[0])
        assert KEY not in said
        assert KEY.encode() not in ran.stdout + ran.stderr
        assert sum(found.searched for found in story.found) > 0
        assert all((found.keys, found.own) == (0, found.searched) for found in story.found)
        assert not story.files_with_key()
        one = denied(
            box, "proxy", "net connect"
        )  # more than one: both call their makers' hosts unasked
        one = denied(box, "reaper", "connect")
        page = box.client.reviews.show(one.agent_id)
        assert [row.path for row in page.changes if row.path == "sums.py"]
        box.client.reviews.commit(one.agent_id, page.summary.digest)
        assert (story.repo / "sums.py").read_text() == SOURCE.replace("a - b", "a + b")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("agent", ENDING, ids=lambda agent: agent.name)
def test_a_budget_stops_it_half_way_for_good(agent: Agent, tmp_path: Path) -> None:
    """The call that is too much is a 429, the tests are not run, and a new agent of that name begins where it stopped."""
    story = Story(agent, tmp_path, 32_000)
    with story.open() as box:
        ran = story.run(box.client.agents)
        assert ran.exit.code != 0
        asked = len(story.server.requests)
        assert 1 <= asked <= 3
        denied(box, "gateway", "budget:tokens")
        assert "tests pass" not in str([request.body for request in story.server.requests])
        again = story.run(box.client.agents)
        assert again.exit.code != 0
        assert len(story.server.requests) == asked
