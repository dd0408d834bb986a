"""docs/howto/review-a-change.md, followed literally."""

import re
import shlex

from commandline import agentbox
from support.api_box import ApiBox

from agentbox.core.paths import CHECKOUT

PAGE = CHECKOUT / "docs/howto/review-a-change.md"
_ID = re.compile(r"agentbox review show (\S+)")


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page, with the lines that follow it."""
    blocks = re.findall(r"^```\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    parts = [
        part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part
    ]
    return [(part.splitlines()[0], part.splitlines()[1:]) for part in parts]


def test_the_page_is_true(box: ApiBox) -> None:
    """Each line that the page shows is printed, in that order; … stands for anything, AGENT for the
    last id that was printed."""
    agent, found = "", steps()
    assert len(found) == 10
    for command, shown in found:
        program, *words = shlex.split(command.replace("AGENT", agent))
        assert program == "./agentbox.sh"
        done = agentbox(box, *words)
        said = done.stdout.decode() + done.stderr.decode()
        if (named := _ID.search(done.stderr.decode())) and words[0] == "run" and shown:
            agent = named[1]
        at = 0
        for line in shown:
            pattern = ".*".join(map(re.escape, line.replace("AGENT", agent).split("…")))
            match = re.compile(f"^{pattern}$", re.MULTILINE).search(said, at)
            assert match is not None, f"{command}: no line {line!r} in\n{said[at:]}"
            at = match.end()
