"""Unauthenticated connections at the socket of a real agent-host."""

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from agentbox_testkit.wait import wait_until
from support.agent_host import AgentHostBox

from agentbox.client.agent_host.connection import connect
from agentbox.core.deadline import Deadline
from agentbox.core.rpc.listener import FIRST_LINE_SECONDS, MAX_UNAUTHENTICATED


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHostBox]:
    made = AgentHostBox(tmp_path_factory.mktemp("box"))
    made.start()
    yield made
    made.stop()


def connect_unauthenticated(box: AgentHostBox, stack: ExitStack) -> socket.socket:
    made = stack.enter_context(socket.socket(socket.AF_UNIX))
    made.connect(str(box.paths.agent_host_socket))
    made.settimeout(FIRST_LINE_SECONDS + 5)
    return made


def is_closed(peer: socket.socket) -> bool:
    """Waits until the other end is closed; False if it sends anything."""
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:  # it disconnected with unread data
        return True


def descriptors(box: AgentHostBox) -> int:
    return len(os.listdir(f"/proc/{box.pid}/fd"))  # noqa: PTH208


async def ping(box: AgentHostBox) -> None:
    client, _ = await connect(box.paths, Deadline.after(5))
    await client.call("ping", {}, Deadline.after(5))
    await client.close()


async def test_a_long_first_line_is_not_read(box: AgentHostBox) -> None:
    """The connection is closed after some of the bytes, however many follow."""
    with ExitStack() as stack:
        peer = connect_unauthenticated(box, stack)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            await asyncio.to_thread(peer.sendall, bytes(64 << 20))
    await ping(box)


async def test_a_word_that_is_no_request_ends_it(box: AgentHostBox) -> None:
    """A notification is not answered: a connection cannot stay open by sending one."""
    with ExitStack() as stack:
        peer = connect_unauthenticated(box, stack)
        peer.sendall(b'{"jsonrpc":"2.0","method":"agent.event","params":{"subscription":1}}\n')
        assert await asyncio.to_thread(is_closed, peer)


async def test_silence_ends_it(box: AgentHostBox) -> None:
    """After its time, and no sooner than it needs."""
    with ExitStack() as stack:
        peer, began = connect_unauthenticated(box, stack), time.monotonic()
        assert await asyncio.to_thread(is_closed, peer)
        assert FIRST_LINE_SECONDS - 0.5 < time.monotonic() - began < FIRST_LINE_SECONDS + 2


async def test_a_crowd_keeps_nobody_out(box: AgentHostBox) -> None:
    """Five times the capacity: only the newest stay, callers can connect, and all descriptors are
    closed at the end."""
    before = descriptors(box)
    with ExitStack() as stack:
        crowd = [connect_unauthenticated(box, stack) for _ in range(5 * MAX_UNAUTHENTICATED)]
        await wait_until(
            lambda: descriptors(box) <= before + MAX_UNAUTHENTICATED, "the oldest are gone"
        )
        await ping(box)
        assert await asyncio.to_thread(is_closed, crowd[0])
    await wait_until(lambda: descriptors(box) <= before, "all are gone")
