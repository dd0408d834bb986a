"""Calls that go to a server together: each has its own answer, refusal and end."""

import asyncio

import pytest

from agentbox.core.slot_errors import BackendError, SlotUnavailable
from agentbox.core.storage.postgres.call_batcher import MAX_BATCH, CallBatcher


class Server:
    """Answers each number with its double; rejects a statement that contains 13; never answers 99."""

    def __init__(self) -> None:
        self.statements: list[list[int]] = []
        self.broken_off: list[list[int]] = []
        self.gone = False

    async def send(self, numbers):
        self.statements.append(list(numbers))
        try:
            await (asyncio.Event().wait() if 99 in numbers else asyncio.sleep(0))
        except asyncio.CancelledError:
            self.broken_off.append(list(numbers))
            raise
        if self.gone:
            raise SlotUnavailable(
                "cannot use beads: gone", slot="beads", impl="external-pg", since=None
            )
        if 13 in numbers:
            raise BackendError("cannot use PostgreSQL: 13", slot="beads", impl="external-pg")
        return [2 * number for number in numbers]


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def together(server):
    return CallBatcher(server.send)


async def test_calls_at_once_are_one_statement_and_each_has_its_answer(server, together):
    """Eight calls of one tick: one statement."""
    assert await asyncio.gather(*map(together.call, range(MAX_BATCH))) == [
        2 * n for n in range(MAX_BATCH)
    ]
    assert server.statements == [list(range(MAX_BATCH))]


async def test_a_statement_has_a_bound_and_the_rest_follows_in_order(server, together):
    """Twenty calls: eight, eight and four."""
    assert await asyncio.gather(*map(together.call, range(20, 40))) == [
        2 * n for n in range(20, 40)
    ]
    assert [len(numbers) for numbers in server.statements] == [
        MAX_BATCH,
        MAX_BATCH,
        20 - 2 * MAX_BATCH,
    ]
    assert [number for numbers in server.statements for number in numbers] == list(range(20, 40))


async def test_one_that_is_refused_refuses_no_other(server, together):
    """A failed statement is repeated, each call alone."""
    found = await asyncio.gather(*map(together.call, (1, 13, 2)), return_exceptions=True)
    assert (found[0], found[2]) == (2, 4)
    assert isinstance(found[1], BackendError)
    assert server.statements == [[1, 13, 2], [1], [13], [2]]


async def test_a_server_that_is_gone_is_asked_once_for_all(server, together):
    """What has no connection is not tried again call by call."""
    server.gone = True
    found = await asyncio.gather(*map(together.call, range(4)), return_exceptions=True)
    assert [type(error) for error in found] == [SlotUnavailable] * 4
    assert server.statements == [[0, 1, 2, 3]]


async def test_what_every_caller_gave_up_is_broken_off(server, together):
    """As long as one caller waits, the statement continues."""
    calls = [asyncio.create_task(together.call(number)) for number in (99, 1)]
    while not server.statements:
        await asyncio.sleep(0)
    calls[0].cancel()
    await asyncio.wait({calls[0]})
    assert server.broken_off == []  # the other still waits
    calls[1].cancel()
    await asyncio.wait({calls[1]})
    assert server.broken_off == [[99, 1]]
    assert await together.call(3) == 6


async def test_a_call_that_is_given_up_leaves_the_next_alone(server, together):
    """The next has its answer."""
    call = asyncio.create_task(together.call(1))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait({call})
    assert await together.call(2) == 4
    assert [2] in server.statements


async def test_a_statement_that_hangs_keeps_the_next_not_waiting(server, together):
    """A locked row delays the following calls by a tenth of a second."""
    hangs = asyncio.create_task(together.call(99))
    while not server.statements:
        await asyncio.sleep(0)
    assert await asyncio.gather(together.call(1), together.call(2)) == [2, 4]
    hangs.cancel()
    await asyncio.wait({hangs})
    assert server.broken_off == [[99]]
