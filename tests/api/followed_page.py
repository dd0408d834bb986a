"""Follows a page of docs/howto literally."""

import re
import shlex
import subprocess
from pathlib import Path

from commandline import agentbox
from support.api_box import ApiBox

_ID = re.compile(r"agentbox review show (\S+)")


def steps(page: Path) -> list[tuple[str, list[str]]]:
    """Each command of the page, with the lines that follow it."""
    blocks = re.findall(r"^```\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    parts = [
        part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part
    ]
    return [(part.splitlines()[0], part.splitlines()[1:]) for part in parts]


def follow(page: Path, box: ApiBox) -> int:
    """Each line that the page shows is printed, in that order; … stands for anything, AGENT for the
    last id that was printed. Commands run in the workspace. The number of commands."""
    agent, found = "", steps(page)
    for command, shown in found:
        program, *words = shlex.split(command.replace("AGENT", agent))
        done = _run(box, program, words)
        said = done.stdout.decode() + done.stderr.decode()
        if (named := _ID.search(done.stderr.decode())) and words[0] == "run" and shown:
            agent = named[1]
        at = 0
        for line in shown:
            pattern = ".*".join(map(re.escape, line.replace("AGENT", agent).split("…")))
            match = re.compile(f"^{pattern}$", re.MULTILINE).search(said, at)
            assert match is not None, f"{command}: no line {line!r} in\n{said[at:]}"
            at = match.end()
    return len(found)


def _run(box: ApiBox, program: str, words: list[str]) -> subprocess.CompletedProcess[bytes]:
    if program == "git":
        workspace = box.paths.workspace
        return subprocess.run([program, *words], cwd=workspace, capture_output=True, check=True)
    assert program == "./agentbox.sh"
    return agentbox(box, *words, cwd=box.paths.workspace)
