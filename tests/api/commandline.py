"""The real command line against a box of a test."""

import subprocess
import sys
from pathlib import Path
from typing import Literal

from support.api_box import TOKEN, ApiBox

# The real command line, with the address of this box instead of the one in a state directory.
SHELL = """
import sys
from pathlib import Path
from agentbox.host.cli import context, main
from agentbox.client import BoxClient
from agentbox.host.cli.commands.dev import completion
completion._GIVE_UP_SECONDS = 60  # it ends after 300 ms, with nothing printed
context.CliContext.workspace_directory = lambda cli: {workspace!r} and Path({workspace!r})
context.CliContext.client = lambda cli: BoxClient({url!r}, token={token!r}, timeout=30)
main.main(sys.argv[1:])
"""


def command(box: ApiBox, *arguments: str, workspace: Path | None = None) -> list[str]:
    code = SHELL.format(url=box.url, token=TOKEN, workspace=workspace and str(workspace))
    return [sys.executable, "-c", code, *arguments]


def agentbox(
    box: ApiBox,
    *arguments: str,
    given: bytes | None = None,
    workspace: Path | Literal["box"] | None = "box",
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """One call of the command line, to its end. `workspace`: a directory of this host, None for a
    volume."""
    return subprocess.run(
        command(
            box, *arguments, workspace=box.paths.workspace if workspace == "box" else workspace
        ),
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
        cwd=cwd,
    )
