"""RC-013, the whole battery: in a container no line of `doctor --attack` gets through, whichever system call list holds it.

Column D; column H is `tests/unit/attack/test_battery.py`. A provider of models is enabled, so that there is no line with
nothing to attack, and it is asked nothing.

Without --full, the run under the engine's own list tries every attack that shares its agent with others, and one of each
group of those that need an agent of their own. The latter are about limits, streams, reviews and an open connection, in
which the container's list has no part. docs/stories/attacks.md has the reply to each in a real run.
"""

from collections.abc import Callable

import pytest
from attacked_page import COLUMNS, PAGE, told
from harness.battery import battery, options
from harness.container import DockerBox
from sampling import OneOfEach

from agentbox.sandbox.attacks.catalogue import CASES


@pytest.mark.parametrize("profile", ["ours", "engine"])
def test_rc_013_every_line(
    docker_box: Callable[..., DockerBox], one_of_each: OneOfEach, profile: str
) -> None:
    """The same verdict on each line as on the page."""
    alone = {line.name for line in CASES if line.isolated}
    chosen = alone if profile == "ours" else one_of_each(alone, lambda name: name.partition(".")[0])
    lines = [line for line in CASES if not line.isolated or line.name in chosen]
    held = battery(docker_box(**options(profile)), lines)
    print("\n".join(f"{row.state}: {row.message}" for row in held.rows.values()))
    page = told(PAGE.read_text())[COLUMNS[profile]]
    assert {name: row.state for name, row in held.rows.items()} == {
        line.name: page[line.name] for line in lines
    }
    assert page.keys() == {line.name for line in CASES}
    assert {name: row.message for name, row in held.rows.items() if row.state != "good"} == {}
    assert held.asked == []
