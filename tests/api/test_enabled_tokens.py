"""Tokens that a restore disabled, and that an operator enables again."""

import uuid
from collections.abc import Callable

import apsw
import pytest
from commandline import agentbox
from support.api_box import ApiBox

from agentbox.client import ApiError


def refused(call: Callable[[], object]) -> int:
    """The status."""
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.status or 0


def test_a_token_that_a_restore_disabled_is_enabled(own_box: Callable[..., ApiBox]) -> None:
    """By name or id, at once and also after a restart, in the journal once; another name is exit
    2."""
    box = own_box(orchestrator=False)
    with box.client() as client:
        made = client.call("create_token", body={"name": "back", "scopes": ["beads:read"]})
    box.stop()
    with apsw.Connection(str(box.paths.state_secrets / "access.db")) as db:
        db.execute("UPDATE tokens SET disabled = 1")
    box.start()
    with box.client(made["value"]) as holder, box.client() as client:
        assert refused(lambda: holder.call("list_beads")) == 401
        assert refused(lambda: client.tokens.enable(str(uuid.uuid4()))) == 404
        unknown = agentbox(box, "token", "enable", "nobody")
        assert unknown.returncode == 2
        assert b"no disabled token has that name" in unknown.stderr
        for word in ("back", made["id"]):  # the second time nothing is left to do
            done = agentbox(box, "token", "enable", word)
            assert done.returncode == 0, done.stderr
            holder.call("list_beads")
        query = {"limit": 1000, "types": "token.enabled"}
        [event] = client.call("read_events", query=query)["events"]
        assert event["data"]["id"] == made["id"]
    box.kill()
    box.start()
    with box.client(made["value"]) as holder:
        holder.call("list_beads")
