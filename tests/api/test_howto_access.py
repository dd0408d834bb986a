"""docs/howto/give-people-access.md, followed literally."""

from followed_page import follow
from support.api_box import ApiBox

from agentbox.client import BoxClient
from agentbox.core.paths import CHECKOUT

PAGE = CHECKOUT / "docs/howto/give-people-access.md"


def test_the_page_is_true(box: ApiBox, client: BoxClient) -> None:
    """Each line that the page shows is printed; ann is out at its end."""
    assert follow(PAGE, box) == 10
    (ann,) = client.users.list().items
    assert ann.disabled_at is not None
    assert client.tokens.list().items == ()
