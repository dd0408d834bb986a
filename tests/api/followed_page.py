"""Follows a page of docs/howto literally."""

import re
import shlex
import subprocess
from collections.abc import Mapping
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


def follow(page: Path, box: ApiBox, *, names: tuple[str, ...] = ()) -> int:
    """Each line that the page shows is printed, in that order; … stands for anything, AGENT for the
    last id that was printed, each of `names` for what was printed where it first stands. Commands
    run in the workspace. The number of commands."""
    agent, found, known = "", steps(page), dict[str, str]()
    for command, shown in found:
        program, *words = shlex.split(_filled(command, known).replace("AGENT", agent))
        done = _run(box, program, words)
        said = done.stdout.decode() + done.stderr.decode()
        if (named := _ID.search(done.stderr.decode())) and words[0] == "run" and shown:
            agent = named[1]
        at = 0
        for line in shown:
            told = _filled(line, known).replace("AGENT", agent)
            pattern = ".*".join(map(re.escape, told.split("…")))
            for name in names:
                pattern = re.sub(rf"\b{name}\b", rf"(?P<{name}>\\S+)", pattern, count=1)
            match = re.compile(f"^{pattern}$", re.MULTILINE).search(said, at)
            assert match is not None, f"{command}: no line {line!r} in\n{said[at:]}"
            known |= match.groupdict()
            at = match.end()
    return len(found)


def _filled(text: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        text = re.sub(rf"\b{name}\b", value, text)
    return text


def _run(box: ApiBox, program: str, words: list[str]) -> subprocess.CompletedProcess[bytes]:
    if program == "git":
        workspace = box.paths.workspace
        return subprocess.run([program, *words], cwd=workspace, capture_output=True, check=True)
    assert program == "./agentbox.sh"
    return agentbox(box, *words, cwd=box.paths.workspace)
