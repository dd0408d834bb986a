"""docs/howto/search-the-journal.md, followed literally."""

from followed_page import follow
from helpers import indexed, until
from support.api_box import ApiBox

from agentbox.client import BoxClient
from agentbox.core.paths import CHECKOUT

TRACE = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "agent_id": "builder-1"}


def test_the_page_is_true(box: ApiBox, client: BoxClient) -> None:
    """Each line that the page shows is printed."""
    events = [
        {"type": "release.begun", "data": {"note": "publishing"}, **TRACE},
        {"type": "release.done", "data": {"note": "published to the mirror"}, **TRACE},
    ]
    last = client.call("append_events", body={"events": events})["last_seq"]
    until(lambda: indexed(client) >= last)
    assert follow(CHECKOUT / "docs/howto/search-the-journal.md", box) == 5
