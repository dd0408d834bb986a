"""pods external-solid meets the contract of the slot on a real Community Solid Server."""

import asyncio
from dataclasses import replace

import pytest
import pytest_asyncio
from agentbox_testkit.contracts.common import expect_error
from agentbox_testkit.contracts.pods import PodsContract
from agentbox_testkit.contracts.pods_common import JSON, list_paths, read_body
from agentbox_testkit.fault_proxy import FaultProxy
from chaos import PODS, box_with, survive_a_kill

from agentbox.adapters.pods.external_solid import ExternalSolidPods
from agentbox.adapters.runtime.adapter import Deps
from agentbox.adapters.runtime.metrics import Metrics
from agentbox.core.deadline import Deadline
from agentbox.core.slot_errors import (
    BackendError,
    PreconditionFailed,
    UnsupportedPatch,
    ValidationError,
)


@pytest.fixture
def store(solid_store):
    return solid_store


@pytest_asyncio.fixture
async def adapter(store):
    return await store.open()


class TestCommunitySolidServer(PodsContract):
    longest = 240  # the server appends `$.unknown` and `.meta` to the name of a file
    has_quota = False

    @pytest.fixture
    def members(self, full):
        """Three pages; a thousand take the server long."""
        return 1000 if full else 200

    @pytest.fixture
    def updaters(self, full):
        """A round of each, and each round changes one: the requests are as many as the square."""
        return 32 if full else 8

    @pytest.fixture
    def increments(self, full):
        """Each is repeated until no other came between."""
        return 40 if full else 12

    async def fill(self, store, adapter, paths):
        """As files: a thousand requests take the server half a minute."""
        for path in paths:
            file = store.directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    async def test_P13_what_the_server_can_is_asked(self, adapter):
        """Community Solid Server returns no tag after a write, and accepts two other patch formats
        instead of JSON Patch; nothing of this is guessed."""
        assert adapter.capabilities == {
            "etag.strong",
            "range",
            "list.paged",
            "patch.json",
            "patch.n3",
        }

    async def test_P13_the_server_s_own_resources_are_no_objects(self, adapter):
        """A description of `a` could be written as `a.meta`."""
        await adapter.write("a", b"1")
        for call in (
            adapter.write("a.meta", b"x"),
            adapter.read("a.meta"),
            adapter.patch("a.meta", b"[]"),
        ):
            await expect_error(ValidationError, call)

    async def test_P13_a_body_of_many_pieces_comes_in_pieces(self, store):
        """3 MiB, both ways; a response that is dropped half read occupies no connection."""
        body = bytes(range(256)) * (12 << 10)

        async def pieces():
            for start in range(0, len(body), 100_000):
                yield body[start : start + 100_000]

        adapter = await store.with_options(max_object=4 << 20).open()
        await adapter.write("a", pieces())
        assert await read_body(adapter, "a") == body
        assert (
            await read_body(adapter, "a", byte_range=(1 << 20, (2 << 20) + 5))
            == body[1 << 20 : (2 << 20) + 6]
        )
        for _ in range(120):  # more than the pool has
            found = await adapter.read("a")
            await anext(found.body)
            del found
            await asyncio.sleep(0)
        assert (await adapter.head("a")).size == len(body)

    async def test_P14_names_that_the_server_encodes_twice_are_told_right(self, adapter):
        """Names with characters that files on Windows may not have."""
        names = ["urn:a:b", "2026-01-01T00:00:00Z", 'a"b', "a<b>|c?*", "100%"]
        for name in names:
            await adapter.write(f"c/{name}", b"")
        assert await list_paths(adapter, "c/") == sorted(f"c/{name}" for name in names)

    async def test_P15_a_patch_that_meets_others_gives_up(self, store, adapter):
        """After five rounds, and changes nothing."""
        await adapter.write("a", b"[]", content_type=JSON)
        other, rounds = await store.open(), 0
        real = adapter._connection.request

        async def late(verb, path, **request):
            nonlocal rounds
            if verb == "PUT":
                rounds += 1
                await other.write("a", b"[%d]" % rounds, content_type=JSON)
            return await real(verb, path, **request)

        adapter._connection.request = late
        await expect_error(
            PreconditionFailed, adapter.patch("a", b'[{"op":"add","path":"/-","value":0}]')
        )
        assert (rounds, await read_body(adapter, "a")) == (5, b"[5]")


async def answering(*lines: str) -> asyncio.Server:
    """A server that sends that response to each request; one for PUT may be given as the second
    argument."""

    async def serve(reader, writer):
        asked = await reader.readuntil(b"\r\n\r\n")
        line = lines[-1 if asked.startswith(b"PUT") else 0]
        writer.write(f"HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


async def opened(store, *lines):
    """An instance over such a server."""
    server = await answering(*lines)
    endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/pod/"
    made = ExternalSolidPods(
        replace(store.cfg, options=store.cfg.options.changed(endpoint=endpoint)),
        Deps(metrics=Metrics()),
    )
    return server, made


@pytest.mark.parametrize(
    "line",
    [
        "302 Found\r\nLocation: http://192.0.2.1/pod/",
        "307 Temporary Redirect\r\nLocation: /elsewhere/",
    ],
)
async def test_P13_a_redirect_of_a_write_is_refused(solid_store, line):
    """To another origin, and to another address of its own."""
    server, made = await opened(solid_store, line)
    async with server:
        await expect_error(BackendError, made.open(Deadline.after(5)))


async def test_P13_a_redirect_to_another_origin_is_refused_for_reading(solid_store):
    """A token would go with it."""
    server, made = await opened(
        solid_store, "302 Found\r\nLocation: http://localhost:1/pod/", "403 Forbidden"
    )
    async with server:
        error = await expect_error(BackendError, made.open(Deadline.after(5)))
    assert "another origin" in error.message


async def test_P15_without_a_strong_tag_nothing_is_patched(solid_store):
    """A server whose tags are weak, or that has none."""
    server, made = await opened(
        solid_store, '200 OK\r\nETag: W/"1"\r\nContent-Type: application/json'
    )
    async with server:
        await made.open(Deadline.after(5))
        assert made.capabilities == {"list.paged"}
        await expect_error(UnsupportedPatch, made.patch("a", b"[]"))
        await made.close()


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "http://192.0.2.1/"},
        {"endpoint": ""},
        {"endpoint": "http://127.0.0.1/?a=b"},
        {"auth": "solid-oidc"},
        {"auth": "nip98"},
    ],
)
async def test_P13_what_may_not_be_used(solid_store, change):
    """Plain http is allowed on this machine only; a login method that is not supported yet is
    reported by its key."""
    await expect_error(BackendError, solid_store.with_options(**change).open())


async def test_a_server_that_is_killed_under_load_loses_nothing(solid, tmp_path):
    """Community Solid Server, by SIGKILL; its objects are files. The one that comes back was started before: a start takes longer
    than all the rest."""
    solid.start()
    solid.prepare()
    async with FaultProxy(solid.port, solid.relay_port) as line:
        box = box_with(
            tmp_path, "pods", "external-solid", {}, endpoint=f"{line.url}/chaos/", auth="none"
        )
        await asyncio.to_thread(box.__enter__)  # the relay is served meanwhile
        try:
            await survive_a_kill(box, PODS, Relayed(solid, line))
        finally:
            await asyncio.to_thread(box.__exit__, None, None, None)


class Relayed:
    """The server behind its relay, which passes on to where it is started."""

    def __init__(self, server, line):
        self._server, self._line = server, line

    def kill(self):
        self._server.kill()

    def start(self):
        self._server.start()
        self._line.target = self._server.port
