"""The real command line against a box of a test."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

from support.api_box import TOKEN, ApiBox
from support.forked_program import run_program

_MODULE = "support.command_of_a_box"


def command(
    box: ApiBox | str, *arguments: str, workspace: Path | str | None = None, token: str = TOKEN
) -> list[str]:
    """The argument list of one call; `box` is a box or an address."""
    url = box if isinstance(box, str) else box.url
    given = {"url": url, "token": token, "workspace": workspace and str(workspace)}
    return [sys.executable, "-m", _MODULE, json.dumps(given), *arguments]


def agentbox(
    box: ApiBox,
    *arguments: str,
    given: bytes | None = None,
    workspace: Path | Literal["box"] | None = "box",
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """One call of the command line, to its end. `workspace`: a directory of this host, None for a
    volume."""
    words = command(
        box, *arguments, workspace=box.paths.workspace if workspace == "box" else workspace
    )
    return run_program(_MODULE, *words[3:], given=given or b"", folder=cwd, timeout=60)
