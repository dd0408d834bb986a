"""The story of docs/howto/change-the-manifest.md, played: what the operator sees before, while and after `up`."""

import pytest
from desk import Desk
from pages import added_line, masked, shown

from agentbox.core.paths import CHECKOUT

PAGE = CHECKOUT / "docs/howto/change-the-manifest.md"


def told(text: str, box: Desk) -> list[str]:
    """The output of a command, under the name that the page gives to its box."""
    return masked(text.replace(box.name, "agentbox"))


@pytest.mark.sampled(3, family="pages that are played")
def test_the_operator_sees_what_the_page_shows(desk: Desk) -> None:
    """`status` names the key, `up` recreates the container and nothing else, and the new limit
    applies."""
    page = {
        call.words[0]: masked(call.output)
        for call in shown(PAGE)
        if call.words[0] in ("status", "up")
    }
    desk.up()
    added, _ = added_line(PAGE)
    desk.write(f"{added}\n")
    assert told(desk("status").out, desk) == page["status"]
    assert told(desk.up().err, desk) == page["up"]
    after = told(desk("status").out, desk)
    assert after == [
        "drift none" if line == "drift resources.memory" else line
        for line in page["status"]
        if not line.startswith("run ")
    ]
    assert desk.container()["HostConfig"]["Memory"] == 8 << 30
    assert desk.status()["posture_drift"] == []  # the box finds that limit itself
