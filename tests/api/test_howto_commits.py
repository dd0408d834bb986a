"""docs/howto/take-commits.md, followed literally."""

import subprocess

from followed_page import follow
from support.api_box import ApiBox

from agentbox.core.paths import CHECKOUT


def test_the_page_is_true(box: ApiBox) -> None:
    """Each line that the page shows is printed, by this product and by git."""
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Operator"],
        ["config", "user.email", "operator@example.org"],
        ["commit", "-q", "--allow-empty", "-m", "start"],
    ):
        subprocess.run(["git", *words], cwd=box.paths.workspace, check=True)
    assert follow(CHECKOUT / "docs/howto/take-commits.md", box) == 11
