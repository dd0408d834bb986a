"""The story of docs/howto/change-the-manifest.md, played: what the operator sees before, while and after `up`."""

import pytest
from cli_box import CliBox
from pages import added_line, masked, shown

from agentbox.core.paths import CHECKOUT

PAGE = CHECKOUT / "docs/howto/change-the-manifest.md"


def told(text: str, box: CliBox) -> list[str]:
    """The output of a command, under the name that the page gives to its box."""
    return masked(text.replace(box.name, "agentbox"))


@pytest.mark.sampled(3, family="pages that are played")
def test_the_operator_sees_what_the_page_shows(cli_box: CliBox) -> None:
    """`status` names the key, `up` recreates the container and nothing else, and the new limit
    applies."""
    page = {
        call.words[0]: masked(call.output)
        for call in shown(PAGE)
        if call.words[0] in ("status", "up")
    }
    cli_box.up()
    added, _ = added_line(PAGE)
    cli_box.write(f"{added}\n")
    assert told(cli_box("status").out, cli_box) == page["status"]
    assert told(cli_box.up().err, cli_box) == page["up"]
    after = told(cli_box("status").out, cli_box)
    assert after == [
        "drift none" if line == "drift resources.memory" else line
        for line in page["status"]
        if not line.startswith("run ")
    ]
    assert cli_box.container()["HostConfig"]["Memory"] == 8 << 30
    assert cli_box.status()["posture_drift"] == []  # the box finds that limit itself
