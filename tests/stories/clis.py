"""Two agent CLIs of different vendors, as npm delivers them: nothing of them is changed."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npm_tools import NPM
from support.model_server import play_script
from support.model_turns import ModelTurn, ToolUse

from agentbox.core.paths import HostPaths

PACKAGES = ("@anthropic-ai/claude-code-linux-x64", "@openai/codex")
TASK = b"Mend the failing test."
THROUGH = "import urllib.request as u; u.urlopen('http://elsewhere.example.org/', timeout=5)"
PAST = "import socket; socket.create_connection(('192.0.2.1', 443), 3)"
LOOK = f'python3 -c "{THROUGH}" 2>&1 | tail -1; python3 -c "{PAST}" 2>&1 | tail -1; env; cat {{secret}} 2>&1'
_WORK = re.compile(r"[Ww]orking directory: ([^\\\"<\s]+)")
END = "The sum is right now, and the tests pass."


@dataclass(frozen=True)
class Agent:
    """A CLI, the kind of provider that it speaks to, and how it is started in a box. `{program}` is its path."""

    name: str
    kind: str
    base: str
    program: str
    command: str

    def script(self, work: str, secret: Path) -> list[ModelTurn]:
        """What the model replies: read, edit, test, look around, end. `work`: the directory that
        the agent reports."""
        look = LOOK.replace("{secret}", str(secret))
        if self.name == "claude":
            changed = {"file_path": f"{work}/sums.py", "old_string": "a - b", "new_string": "a + b"}
            return [
                ModelTurn(
                    text="I read the file first.",
                    tool_uses=(ToolUse(name="Read", arguments={"file_path": f"{work}/sums.py"}),),
                ),
                ModelTurn(
                    text="It should add.", tool_uses=(ToolUse(name="Edit", arguments=changed),)
                ),
                self._run("python3 test_sums.py"),
                self._run(look),
                ModelTurn(text=END),
            ]
        mend = "sed -i 's/a - b/a + b/' sums.py"
        return [
            self._run("cat sums.py"),
            self._run(mend),
            self._run("python3 test_sums.py"),
            self._run(look),
            ModelTurn(text=END),
        ]

    def say(self, secret: Path) -> Callable[[int, Mapping[str, Any]], ModelTurn]:
        """Plays the script, in the directory that the agent names (its branch)."""

        def say(spoken: int, body: Mapping[str, Any]) -> ModelTurn:
            named = _WORK.search(json.dumps(body))
            return play_script(self.script(named[1] if named else "", secret))(spoken, body)

        return say

    def _run(self, line: str) -> ModelTurn:
        if self.name == "claude":
            return ModelTurn(
                tool_uses=(
                    ToolUse(name="Bash", arguments={"command": line, "description": "Runs it"}),
                )
            )
        return ModelTurn(
            tool_uses=(
                ToolUse(name="exec_command", arguments={"cmd": line, "yield_time_ms": 30_000}),
            )
        )


CLAUDE = Agent(
    "claude", "anthropic", "{url}", "@anthropic-ai/claude-code-linux-x64/claude",
    '["{program}", "-p", "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Edit"]',
)  # fmt: skip
# This one does not read OPENAI_BASE_URL: its own setting for a provider is given the value. Its web search is a tool that runs
# at the provider, which the gateway refuses.
CODEX = Agent(
    "codex", "openai", "{url}/v1", "@openai/codex-linux-x64/vendor/*/bin/codex",
    """["/bin/sh", "-c", 'exec {program} exec --skip-git-repo-check --sandbox danger-full-access -c web_search="disabled" """
    """-c model_provider=box -c model_providers.box="{name=\\"box\\",base_url=\\"$OPENAI_BASE_URL\\",env_key=\\"OPENAI_API_KEY\\","""
    """wire_api=\\"responses\\"}" -m small-1 -']""",
)  # fmt: skip


def installed() -> Path:
    """The directory `node_modules` with both, fetched once by npm. Raises CalledProcessError."""
    folder = HostPaths.for_this_user().cache / "stories"
    if not all(list((folder / "node_modules").glob(agent.program)) for agent in (CLAUDE, CODEX)):
        folder.mkdir(parents=True, exist_ok=True)
        words = [
            *NPM,
            "install",
            "--prefix",
            str(folder),
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            *PACKAGES,
        ]
        subprocess.run(words, check=True, timeout=600)
    return folder / "node_modules"


def place(agent: Agent, folder: Path) -> Path:
    """The program below a directory of the box's, where an image has it too."""
    source = next(installed().glob(agent.program))
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, folder / agent.name)
    return folder / agent.name
