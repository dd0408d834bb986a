"""Clauses O8 to O10: stored and streamed output, input."""

import asyncio
import json
import time

import pytest

from agentbox.contracts.orchestrator import Orchestrator
from agentbox.core.slot_errors import (
    CursorExpired,
    InvalidTransition,
    NotFound,
    ValidationError,
)
from agentbox_testkit.contracts.common import transport
from agentbox_testkit.contracts.orchestrator_lab import (
    FOREVER,
    documents,
    first_output,
    items,
    new_id,
    output,
    shell,
    spec,
    wait_ended,
)

MIB = 1 << 20


class StreamClauses:
    """Uses the fixtures `adapter`, open, and `lab`, not started."""

    @transport
    async def test_O08_the_stream_is_whole_and_ends(self, adapter: Orchestrator) -> None:
        """Cursor 0 returns all output, also from before any subscription, then `state` and
        `exit`.
        """
        handle = await adapter.spawn(
            shell("for i in 1 2 3; do echo out$i; echo err$i >&2; done; exit 7"),
            request_id=new_id(),
        )
        await wait_ended(adapter, handle.agent_id)
        stream_items = await items(adapter, handle.agent_id)
        assert output(stream_items) == b"out1\nout2\nout3\n"
        assert output(stream_items, "stderr") == b"err1\nerr2\nerr3\n"
        assert [item.kind for item in stream_items[-2:]] == ["state", "exit"]
        assert documents(stream_items, "exit")[0]["code"] == 7
        assert [item.cursor for item in stream_items] == sorted(
            {item.cursor for item in stream_items}
        )

    @transport
    async def test_O08_it_resumes_from_any_cursor(self, adapter: Orchestrator) -> None:
        """Each cursor returns exactly what followed it; a live reader and a late one get the same
        items.
        """
        script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.005; done"
        handle = await adapter.spawn(shell(script), request_id=new_id())
        live, other = await asyncio.gather(
            items(adapter, handle.agent_id), items(adapter, handle.agent_id)
        )
        assert live == other
        for item in live:
            assert await items(adapter, handle.agent_id, item.cursor) == [
                later for later in live if later.cursor > item.cursor
            ]

    async def test_O08_without_follow_it_ends_where_it_is(self, adapter: Orchestrator) -> None:
        """A running agent's stream ends with the stored output; an unknown agent's is NotFound."""
        handle = await adapter.spawn(
            shell(f"echo up; exec {' '.join(FOREVER)}"), request_id=new_id()
        )
        await first_output(adapter, handle, b"up")
        assert output(await items(adapter, handle.agent_id, follow=False)) == b"up\n"
        await adapter.terminate(handle)
        with pytest.raises(NotFound):
            await items(adapter, new_id())

    @transport
    async def test_O08_a_trimmed_cursor_has_expired(self, adapter: Orchestrator) -> None:
        """A cursor before dropped output is CursorExpired, with the oldest valid one."""
        handle = await adapter.spawn(shell("head -c 3000000 /dev/zero"), request_id=new_id())
        await wait_ended(adapter, handle.agent_id)
        with pytest.raises(CursorExpired) as caught:
            await items(adapter, handle.agent_id, 1)
        oldest = caught.value.members["oldest"]
        assert [item.kind for item in await items(adapter, handle.agent_id, oldest)][-1] == "exit"

    async def test_O09_a_flood_is_kept_in_part_and_counted(self, adapter: Orchestrator) -> None:
        """Without subscribers the program ends; the newest `limits.stdout` bytes are kept, the rest
        is counted.
        """
        total = 24 * MIB
        handle = await adapter.spawn(
            shell(f"head -c {total} /dev/zero; echo end"), request_id=new_id()
        )
        await wait_ended(adapter, handle.agent_id)
        stream_items = await items(adapter, handle.agent_id)
        retained = output(stream_items)
        truncations = [
            document for document in documents(stream_items) if document["state"] == "truncated"
        ]
        assert MIB // 2 < len(retained) <= MIB
        assert retained.endswith(b"end\n")
        assert truncations[0]["stream"] == "stdout"
        assert truncations[0]["dropped_bytes"] + len(retained) == total + 4

    @transport
    async def test_O09_a_slow_reader_holds_nobody_up(self, adapter: Orchestrator) -> None:
        """The program ends while a subscriber does not read; later it gets the truncation, then the
        newest output.
        """
        handle = await adapter.spawn(
            shell(f"head -c {8 * MIB} /dev/zero; echo end"), request_id=new_id()
        )
        stream = aiter(adapter.stream(handle.agent_id))
        stream_items = [await anext(stream)]
        await wait_ended(adapter, handle.agent_id)
        stream_items += [item async for item in stream]
        assert {
            document["stream"]
            for document in documents(stream_items)
            if document["state"] == "truncated"
        } == {"stdout"}
        assert output(stream_items).endswith(b"end\n")
        assert [item.cursor for item in stream_items] == sorted(
            {item.cursor for item in stream_items}
        )

    async def test_O09_the_rate_is_bounded(self, adapter: Orchestrator) -> None:
        """64 MiB take at least 1.5 s: 32 MiB a second after an initial burst."""
        start = time.monotonic()
        handle = await adapter.spawn(shell(f"head -c {64 * MIB} /dev/zero"), request_id=new_id())
        await wait_ended(adapter, handle.agent_id)
        assert time.monotonic() - start > 1.5

    @transport
    async def test_O10_attach_carries_bytes_unchanged(self, adapter: Orchestrator) -> None:
        """Every byte value passes in both directions; closing stdin reaches the program."""
        handle = await adapter.spawn(spec("cat", stdin="pipe"), request_id=new_id())
        attachment = await adapter.attach(handle)
        sent = bytes(range(256)) * 4096
        sending = asyncio.create_task(attachment.send(sent))
        received = b""
        async for chunk in attachment:
            received += chunk
            if len(received) == len(sent):
                break
        await sending
        assert received == sent
        await attachment.close_stdin()
        await wait_ended(adapter, handle.agent_id)
        assert (await adapter.get(handle.agent_id)).exit.code == 0  # type: ignore[union-attr]

    @transport
    async def test_O10_input_given_at_spawn_reaches_the_program(
        self, adapter: Orchestrator
    ) -> None:
        """All bytes and the end of file, however late it reads; a program that does not read
        continues.
        """
        data = bytes(range(256)) * 2048
        reader = await adapter.spawn(
            shell("sleep 1; wc -c", stdin="pipe"), request_id=new_id(), stdin=data
        )
        ignorer = await adapter.spawn(
            shell("exec 0<&-; echo on", stdin="pipe"), request_id=new_id(), stdin=data
        )
        with pytest.raises(ValidationError):
            await adapter.spawn(spec("cat"), request_id=new_id(), stdin=data)
        for handle, expected in ((reader, b"%d\n" % len(data)), (ignorer, b"on\n")):
            await wait_ended(adapter, handle.agent_id)
            stream_items = [item async for item in adapter.stream(handle.agent_id, follow=False)]
            assert b"".join(item.data for item in stream_items if item.kind == "stdout") == expected

    async def test_O10_lines_of_json_rpc_pass(self, adapter: Orchestrator) -> None:
        """An agent with JSON-RPC on its pipes is reachable through the attachment."""
        script = (
            "while read line; do "
            'echo "{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"result\\":$line}"; done'
        )
        handle = await adapter.spawn(shell(script, stdin="pipe"), request_id=new_id())
        attachment = await adapter.attach(handle)
        await attachment.send(b'{"method":"initialize"}\n')
        async for chunk in attachment:
            assert json.loads(chunk)["result"] == {"method": "initialize"}
            break
        await adapter.terminate(handle)

    @transport
    async def test_O10_one_holder_at_a_time(self, adapter: Orchestrator) -> None:
        """A second attach is InvalidTransition; after the first is closed, the next continues where
        it stopped.
        """
        handle = await adapter.spawn(spec("cat", stdin="pipe"), request_id=new_id())
        first = await adapter.attach(handle)
        with pytest.raises(InvalidTransition):
            await adapter.attach(handle)
        await first.send(b"one\n")
        async for chunk in first:
            assert chunk == b"one\n"
            break
        await first.aclose()
        async with asyncio.timeout(30):
            second = await _attach_when_free(adapter, handle)
        await second.send(b"two\n")
        async for chunk in second:
            assert chunk == b"two\n"
            break
        await adapter.terminate(handle)

    async def test_O10_without_a_pipe_nobody_attaches(self, adapter: Orchestrator) -> None:
        """An agent whose stdin is null, or that has ended, is InvalidTransition."""
        handle = await adapter.spawn(spec(*FOREVER), request_id=new_id())
        with pytest.raises(InvalidTransition):
            await adapter.attach(handle)
        await adapter.terminate(handle)
        with pytest.raises(InvalidTransition):
            await adapter.attach(handle)


async def _attach_when_free(adapter: Orchestrator, handle: object):  # type: ignore[no-untyped-def]
    """Closing an attachment is not awaited by its holder."""
    while True:
        try:
            return await adapter.attach(handle)  # type: ignore[arg-type]
        except InvalidTransition:
            await asyncio.sleep(0.01)
