"""The real command line against a box of a test."""

import subprocess
import sys

from support.api_box import TOKEN, ApiBox

# The real command line, with the address of this box instead of the one in a state directory.
SHELL = """
import sys
from pathlib import Path
from agentbox.host.cli import context, main
from agentbox.client import BoxClient
context.CliContext.workspace_directory = lambda cli: Path({workspace!r})
context.CliContext.client = lambda cli: BoxClient({url!r}, token={token!r}, timeout=30)
main.main(sys.argv[1:])
"""


def command(box: ApiBox, *arguments: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        SHELL.format(url=box.url, token=TOKEN, workspace=str(box.paths.workspace)),
        *arguments,
    ]


def agentbox(
    box: ApiBox, *arguments: str, given: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """One call of the command line, to its end."""
    return subprocess.run(
        command(box, *arguments), input=given, capture_output=True, timeout=60, check=False
    )
