"""WebSockets of a person end with the token or the user; the agent that they are attached to goes on."""

import threading
import time
from collections.abc import Callable

import pytest
from helpers import spec
from support.api_box import ApiBox

from agentbox.client import ApiError, BoxClient, BoxUnreachable
from agentbox.contracts.roles import SCOPES_OF


def revoke(client: BoxClient, id: str) -> None:
    """The token alone."""
    client.tokens.revoke(id)


def disable(client: BoxClient, _id: str) -> None:
    """The user, and so the token."""
    client.users.disable("ann")
    client.users.enable("ann")


def narrow(client: BoxClient, _id: str) -> None:
    """A role that may not attach."""
    client.users.set_role("ann", "viewer")
    client.users.set_role("ann", "operator")


@pytest.mark.timed
@pytest.mark.parametrize("end", [revoke, disable, narrow])
def test_an_attached_person_is_out_within_a_second(
    box: ApiBox, client: BoxClient, end: Callable[[BoxClient, str], None]
) -> None:
    """Nothing that is sent later reaches the agent; another client attaches."""
    if not client.users.list().items:
        client.users.add("ann", "operator")
    token = client.tokens.create("anns", sorted(SCOPES_OF["operator"]), user="ann")
    made = client.agents.spawn(spec("sh", "-c", "cat; exec sleep 1000", stdin="pipe"))
    out = threading.Event()
    with (
        box.client(token.value) as own,
        own.agents.attach(made.agent_id, made.generation) as attached,
    ):
        attached.send(b"one")
        assert next(iter(attached)) == b"one"

        def read() -> None:
            with pytest.raises((ApiError, BoxUnreachable)):
                list(attached)
            out.set()

        reader = threading.Thread(target=read)
        reader.start()
        began = time.monotonic()
        end(client, token.id)
        assert out.wait(5)
        assert time.monotonic() - began < 1
        reader.join()
    with client.agents.attach(made.agent_id, made.generation) as again:
        again.send(b"two")
        assert b"two" in next(iter(again))
    client.agents.terminate(made.agent_id, made.generation, grace_s=0)
