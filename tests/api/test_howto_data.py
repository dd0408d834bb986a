"""docs/howto/work-with-data.md, followed literally."""

from followed_page import follow
from support.api_box import ApiBox

from agentbox.core.paths import CHECKOUT

NAMES = ("EPIC", "NOTES", "PUBLISH", "LEASE")


def test_the_page_is_true(box: ApiBox) -> None:
    """Each line that the page shows is printed."""
    (box.paths.workspace / "notes.txt").write_text("What is new")
    assert follow(CHECKOUT / "docs/howto/work-with-data.md", box, names=NAMES) == 31
