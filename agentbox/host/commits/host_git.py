"""Runs the git of the operator's machine, without hooks and programs of any configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import environment
from agentbox.core.visible_text import escape_invisible

_SETTINGS: Final = {
    "core.hooksPath": os.devnull,
    "core.alternateRefsCommand": "true",
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "gc.auto": "0",
    "maintenance.auto": "false",
    "fetch.fsckObjects": "true",
    "transfer.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.writeCommitGraph": "false",
    "protocol.allow": "never",
    "protocol.file.allow": "always",
    "submodule.recurse": "false",
    "commit.gpgSign": "false",
}
_MAX_WORDS: Final = 2_000  # characters of an error


class GitRefused(Exception):
    """git failed; the text is its first words, escaped."""


class HostGit:
    """git for one repository: `arguments` select it."""

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        """Raises AgentboxError (exit 3) without git."""
        program = shutil.which("git")
        if program is None:
            raise AgentboxError(
                "cannot take commits: git is not installed on this machine",
                "Install git, or take the files without commits.",
                exit_code=ExitCode.PREREQUISITE,
            )
        settings = (word for item in _SETTINGS.items() for word in ("-c", "=".join(item)))
        self._argv = [program, "--no-replace-objects", *settings, *arguments]
        inherited = {
            name: value for name, value in environment().items() if not name.startswith("GIT_")
        }
        self._env = {**inherited, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(env or {})}

    def run(self, *arguments: str, stdin: IO[bytes] | None = None) -> str:
        """The output without the last line break. Raises GitRefused."""
        done = subprocess.run(
            [*self._argv, *arguments],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            capture_output=True,
            env=self._env,
            check=False,
        )
        if done.returncode:
            words = done.stderr.decode("utf-8", "surrogateescape")[:_MAX_WORDS].strip()
            lines = "; ".join(map(escape_invisible, words.splitlines()))
            raise GitRefused(lines or f"git ended with {done.returncode}")
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def succeeds(self, *arguments: str) -> bool:
        """Whether the command ends with 0."""
        try:
            self.run(*arguments)
        except GitRefused:
            return False
        return True


def repository_at(directory: Path) -> HostGit:
    """git for the operator's repository in that directory. Raises AgentboxError without one."""
    git = HostGit("-C", str(directory))
    try:
        top = git.run("rev-parse", "--show-toplevel")
    except GitRefused as error:
        raise AgentboxError(
            f"cannot take commits into {directory}: no-repository: {error}",
            "Export them with `agentbox review export`, or take the files without commits.",
        ) from error
    if not Path(top).samefile(directory):
        raise AgentboxError(
            f"cannot take commits into {directory}: no-repository: the repository is at {top}",
            "Export them with `agentbox review export`, or take the files without commits.",
        )
    return git
