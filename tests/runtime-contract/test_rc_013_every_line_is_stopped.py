"""RC-013, the whole battery: in a container no line of `doctor --attack` gets through, whichever system call list holds it.

Column D; column H is `tests/unit/attack/test_battery.py`. A provider of models is enabled, so that there is no line with
nothing to attack, and it is asked nothing. docs/stories/attacks.md says what each line was answered in a real run.
"""

from collections.abc import Callable

import pytest
from attacked_page import COLUMNS, PAGE, told
from harness.battery import battery, options
from harness.container import DockerBox


@pytest.mark.parametrize("profile", ["ours", "engine"])
def test_rc_013_every_line(docker_box: Callable[..., DockerBox], profile: str) -> None:
    """The same lines as on the page, and the same verdict on each."""
    held = battery(docker_box(**options(profile)))
    print("\n".join(f"{row.state}: {row.said}" for row in held.rows.values()))
    assert {name: row.state for name, row in held.rows.items()} == told(PAGE.read_text())[COLUMNS[profile]]
    assert {name: row.said for name, row in held.rows.items() if row.state != "good"} == {}
    assert held.asked == []
