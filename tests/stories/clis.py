"""Agent CLIs of several vendors, as npm delivers them: nothing of them is changed. Their settings
come from their preset. The versions are those of `package-lock.json` beside this file."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import acp_peers
from npm_tools import NODE, NPM
from support.model_server import play_script
from support.model_turns import ModelTurn, ToolUse

from agentbox.core.paths import HostPaths

TASK: Final = b"Mend the failing test."
END: Final = "The sum is right now, and the tests pass."
_THROUGH = "import urllib.request as u; u.urlopen('http://elsewhere.example.org/', timeout=5)"
_PAST = "import socket; socket.create_connection(('192.0.2.1', 443), 3)"
_LOOK = f'python3 -c "{_THROUGH}" 2>&1 | tail -1; python3 -c "{_PAST}" 2>&1 | tail -1; env; cat {{secret}} 2>&1'
_WORK = re.compile(r"[Ww]ork(?:ing|space) director(?:y|ies):\s*(?:\\n\s*- )?([^\\\"<\s]+)")
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Agent:
    """A CLI with its preset. `program` is its file in `node_modules`, `arguments` what follows
    it."""

    name: str
    preset: str
    kind: str
    base: str
    program: str
    arguments: tuple[str, ...]
    shell: Callable[[str], ToolUse]
    edit: Callable[[str], ToolUse] | None = None

    def command(self, *program: str) -> str:
        """The command as a value of the manifest."""
        return json.dumps([*program, *self.arguments])

    def say(self, secret: Path) -> Callable[[int, Mapping[str, Any]], ModelTurn]:
        """What the model answers: read, edit, test, look around, end; in the directory that the
        agent names. A call without tools is one of the CLI's own, for a title or a summary."""

        def say(spoken: int, body: Mapping[str, Any]) -> ModelTurn:
            if not body.get("tools"):
                return ModelTurn(text="Fix a sum")
            named = _WORK.search(json.dumps(body))
            return play_script(self._script(named[1] if named else "", secret))(spoken, body)

        return say

    def _script(self, work: str, secret: Path) -> list[ModelTurn]:
        fix = self.shell("sed -i 's/a - b/a + b/' sums.py")
        return [
            ModelTurn(text="I read the file first.", tool_uses=(self.shell("cat sums.py"),)),
            ModelTurn(tool_uses=(self.edit(f"{work}/sums.py") if self.edit else fix,)),
            ModelTurn(tool_uses=(self.shell("python3 test_sums.py"),)),
            ModelTurn(tool_uses=(self.shell(_LOOK.replace("{secret}", str(secret))),)),
            ModelTurn(text=END),
        ]


def _claude_edit(path: str) -> ToolUse:
    changed = {"file_path": path, "old_string": "a - b", "new_string": "a + b"}
    return ToolUse(name="Edit", arguments=changed)


def _bash(tool: str) -> Callable[[str], ToolUse]:
    return lambda line: ToolUse(
        name=tool, arguments={"command": line, "description": "Runs a command"}
    )


def _exec_command(line: str) -> ToolUse:
    return ToolUse(name="exec_command", arguments={"cmd": line, "yield_time_ms": 30_000})


CLAUDE: Final = Agent(
    name="claude",
    preset="claude-code",
    kind="anthropic",
    base="{url}",
    program="@anthropic-ai/claude-code-linux-x64/claude",
    arguments=("-p", "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Read,Edit"),
    shell=_bash("Bash"),
    edit=_claude_edit,
)  # fmt: skip
CODEX: Final = Agent(
    name="codex",
    preset="codex",
    kind="openai",
    base="{url}/v1",
    program="@openai/codex-linux-x64/vendor/*/bin/codex",
    arguments=("exec", "--skip-git-repo-check", "-m", "small-1", "-"),
    shell=_exec_command,
)
GEMINI: Final = Agent(
    name="gemini",
    preset="gemini-cli",
    kind="gemini",
    base="{url}",
    program="@google/gemini-cli/bundle",
    arguments=("--approval-mode", "yolo", "-m", "gemini-2.5-pro"),
    shell=_bash("run_shell_command"),
)
OPENCODE: Final = Agent(
    name="opencode",
    preset="opencode",
    kind="openai",
    base="{url}/v1",
    program="opencode-linux-x64/bin/opencode",
    arguments=("run", "-m", "openai/gpt-5"),
    shell=_bash("bash"),
)
AGENTS: Final = (CLAUDE, CODEX, GEMINI, OPENCODE)


def install() -> Path:
    """The directory `node_modules` with all of them, fetched once for each state of the lock.
    Raises CalledProcessError."""
    folder = HostPaths.for_this_user().cache / "stories"
    lock, stamp = (_HERE / "package-lock.json").read_text(), folder / ".lock"
    if not stamp.exists() or stamp.read_text() != lock:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy2(_HERE / name, folder)
        words = [*NPM, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(words, cwd=folder, check=True, timeout=600)
        stamp.write_text(lock)
    return folder / "node_modules"


def place(agent: Agent, folder: Path) -> list[str]:
    """Copies the program to a directory of the box, where an image has it too. Returns the first
    words of a command: a bundle of scripts is run by Node, as the image's link to it is."""
    source = next(install().glob(agent.program))
    folder.mkdir(parents=True, exist_ok=True)
    if not source.is_dir():
        shutil.copy2(source, folder / agent.name)
        return [str(folder / agent.name)]
    shutil.copytree(source, folder / "bundle")
    shutil.copy2(NODE, folder / "node")
    return [str(folder / "node"), str(folder / "bundle/gemini.js")]


def place_acp(agent: Agent, folder: Path) -> list[str]:
    """Copies what speaks the Agent Client Protocol to a directory of the box; returns its command. A
    model is named, since each would else begin with one that its maker's host names."""
    program = place(agent, folder)
    if agent is GEMINI:
        return [*program, "--acp", "-m", "gemini-2.5-pro"]
    if agent is OPENCODE:
        return ["env", 'OPENCODE_CONFIG_CONTENT={"model":"openai/gpt-5"}', *program, "acp"]
    acp_peers.install()
    adapters = folder / "node_modules"
    shutil.copytree(
        acp_peers.MODULES, adapters, symlinks=True, ignore=shutil.ignore_patterns("acpx")
    )
    shutil.copy2(NODE, folder / "node")
    settings = {
        "claude": [f"CLAUDE_CODE_EXECUTABLE={program[0]}"],
        "codex": [f"CODEX_PATH={program[0]}", 'CODEX_CONFIG={"model":"small-1"}'],
    }
    main = adapters / acp_peers.ADAPTERS[agent.name].relative_to(acp_peers.MODULES)
    return ["env", *settings[agent.name], str(folder / "node"), str(main / "dist/index.js")]
