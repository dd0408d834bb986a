"""Clients and adapters of the Agent Client Protocol, as npm delivers them: nothing of them is
changed. The versions are those of `acp/package-lock.json`.
"""

import fcntl
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from npm_tools import NODE, NPM

HERE = Path(__file__).parent / "acp"
MODULES = HERE / "node_modules"
SDK = MODULES / "acpx/node_modules/@agentclientprotocol/sdk/dist"
EXAMPLE_CLIENT = SDK / "examples/client.js"
"""That of the TypeScript SDK: it starts the agent with `npx` and asks for permissions on a pipe."""
ADAPTERS = {
    "claude": MODULES / "@agentclientprotocol/claude-agent-acp",
    "codex": MODULES / "@agentclientprotocol/codex-acp",
}


@cache
def install() -> None:
    """Installs them once for each state of the lock; runs of several suites wait for each other."""
    stamp, lock = MODULES / ".lock", (HERE / "package-lock.json").read_text()
    with (HERE / "package-lock.json").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == lock:
            return
        argv = [*NPM, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=optional"]
        done = subprocess.run(argv, cwd=HERE, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        stamp.write_text(lock)


def acpx(folder: Path, command: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
    """The first words and the environment of a call of acpx, whose agent `agentbox` is that
    command. `folder` is its HOME.
    """
    install()
    (folder / ".acpx").mkdir(parents=True, exist_ok=True)
    settings = {"agents": {"agentbox": {"argv": [*command]}}}
    (folder / ".acpx/config.json").write_text(json.dumps(settings))
    environment = {**os.environ, "HOME": str(folder), "PATH": _path(folder)}
    return [str(NODE), str(MODULES / "acpx/dist/cli.js")], environment


def example_client(folder: Path, command: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
    """Words and environment of a call of the example client, whose agent is that command."""
    install()
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    npx = folder / "bin/npx"
    words = " ".join(f"'{word}'" for word in command)
    npx.write_text(f"#!/bin/sh\nexec {words}\n")
    npx.chmod(0o755)
    return [str(NODE), str(EXAMPLE_CLIENT)], {**os.environ, "PATH": _path(folder)}


def _path(folder: Path) -> str:
    return f"{folder / 'bin'}:{NODE.parent}:{os.environ['PATH']}"
