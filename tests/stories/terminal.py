"""Terminal sessions: what a person types, and all output. A session can be stored as a page of
docs/stories."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentbox.core.paths import CHECKOUT

_SHELL = f'agentbox() {{ "{CHECKOUT}/agentbox.sh" "$@"; }}\n'  # what is typed as `agentbox`
_TOKEN = re.compile(r"(_TOKEN=|API_KEY=|://agent:)[^@\s]+")


@dataclass
class Session:
    """One terminal in `folder`. stdout and stderr are merged, in their order; the output is `text`.
    `shell`: functions for what is typed."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    shell: str = _SHELL

    def type(self, line: str, *, code: int = 0, seconds: float = 300) -> str:
        """What the line shows. Raises AssertionError when it ends with another code, TimeoutExpired."""
        done = subprocess.run(
            ["bash", "-c", self.shell + line], cwd=self.folder, env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False,
        )  # fmt: skip
        said = done.stdout.decode("utf-8", "replace")
        self.text += f"$ {line}\n{said}" + ("" if said.endswith("\n") or not said else "\n")
        if done.returncode:
            self.text += f"[exit {done.returncode}]\n"
        assert done.returncode == code, f"$ {line}\n{said}\nexit {done.returncode}"
        return said

    def remark(self, words: str) -> None:
        """A line of explanation between commands."""
        self.text += f"\n# {words}\n"

    def page(self) -> str:
        """The text without what depends on this machine or this run: directories, and tokens of
        agents."""
        found = self.text.replace(str(self.folder), "~/story").replace(str(CHECKOUT), "~/agentbox")
        return (
            "\n".join(
                line.rstrip() for line in _TOKEN.sub(r"\1[a token]", found).strip().splitlines()
            )
            + "\n"
        )
