"""docs/howto/review-a-change.md, followed literally."""

from followed_page import follow
from support.api_box import ApiBox

from agentbox.core.paths import CHECKOUT


def test_the_page_is_true(box: ApiBox) -> None:
    """Each line that the page shows is printed."""
    assert follow(CHECKOUT / "docs/howto/review-a-change.md", box) == 10
