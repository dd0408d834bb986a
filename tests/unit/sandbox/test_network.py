"""What a confined process reaches by TCP: the gateway, granted ports and its own servers, and no
others."""

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from support.confined_process import EVERYWHERE, TCP, hello_server, run_json
from support.offline import offline

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.syscalls.addresses import SocketAddress
from agentbox.sandbox.syscalls.socket_diag import SocketDiag, socket_ids

NODE = """
const http = require("http"), server = http.createServer((_, answer) => answer.end("hello"));
server.listen(0, () => http.get({host: "localhost", port: server.address().port}, reply => {
  reply.setEncoding("utf8"); reply.on("data", text => process.stdout.write(text)); reply.on("end", () => server.close());
}));
"""
FREE = Confinement(grants=(EVERYWHERE,))
V6 = socket.has_ipv6 and not subprocess.run(
    [sys.executable, "-c", "import socket; socket.create_server(('::1', 0), family=socket.AF_INET6)"],
    check=False, capture_output=True,
).returncode  # fmt: skip
needs_v6 = pytest.mark.skipif(not V6, reason="this machine has no ::1")


def test_the_gateway_is_reached_and_nothing_beside_it() -> None:
    """Its port on 127.0.0.1, also mapped into IPv6 and as a wildcard; on no other address, and no other port."""
    with hello_server() as gateway, hello_server() as other:
        found = run_json(
            TCP + """
gateway, other = sys.argv[1:]
said(
    door=tried(lambda: connect("127.0.0.1", gateway)), wild=tried(lambda: connect("0.0.0.0", gateway)),
    mapped=tried(lambda: connect("::ffff:127.0.0.1", gateway, socket.AF_INET6)),
    other=tried(lambda: connect("127.0.0.1", other)), second=tried(lambda: connect("127.0.0.2", gateway)),
    six=tried(lambda: connect("::1", gateway, socket.AF_INET6)), out=tried(lambda: connect("192.0.2.1", gateway)),
    metadata=tried(lambda: connect("169.254.169.254", 80)), take=tried(lambda: bind("127.0.0.1", gateway)),
    take_second=tried(lambda: bind("127.0.0.2", gateway)), eth=tried(lambda: bind("192.0.2.1")),
)
""",
            replace(FREE, door=gateway), str(gateway), str(other),
        )  # fmt: skip
    assert {name for name, word in found.items() if word == "passed"} == {"door", "wild", "mapped"}
    assert set(found.values()) == {"passed", "EACCES"}, found


def test_a_port_of_the_box_is_never_the_agents() -> None:
    """Neither to bind nor to connect to, whether or not a program listens there."""
    script = (
        TCP
        + "said(bind=tried(lambda: bind('', sys.argv[1])), connect=tried(lambda: connect('', sys.argv[1])))"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = run_json(script, replace(FREE, closed_ports=(port,)), str(port))
    assert found == {"bind": "EACCES", "connect": "EACCES"}


def test_a_port_of_a_service_on_loopback_is_never_the_agents() -> None:
    """While it is down, a program that listened there would receive what is meant for it."""
    script = (
        TCP
        + "said(bind=tried(lambda: bind('127.0.0.1', sys.argv[1])), all=tried(lambda: bind('', sys.argv[1])))"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = run_json(script, replace(FREE, target_ports=(port,)), str(port))
    assert found == {"bind": "EACCES", "all": "EACCES"}


def test_a_server_of_ones_own() -> None:
    """On loopback whatever address was requested; a wildcard of IPv6 is 127.0.0.1; without bind
    too; again after close."""
    found = run_json(
        TCP + """
def unbound():
    with socket.socket() as server:
        server.listen()
        connect(*server.getsockname())
        return server.getsockname()[0]
def again():
    with socket.create_server(("127.0.0.1", 0)) as one: port = one.getsockname()[1]
    with socket.socket() as probe: probe.bind(("127.0.0.1", 0)); free = probe.getsockname()[1]
    for at in (port, free):
        with socket.create_server(("127.0.0.1", at)): connect("127.0.0.1", at)
def twice():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.socket() as two: two.bind(one.getsockname())
def nobody():
    with socket.create_server(("127.0.0.1", 0)) as one: port = one.getsockname()[1]
    connect("127.0.0.1", port)
def child():
    with socket.create_server(("127.0.0.1", 0)) as one:
        if (pid := os.fork()) == 0: connect(*one.getsockname()); os._exit(0)
        one.accept()[0].close(); one.listen(7)
        assert os.waitpid(pid, 0)[1] == 0
def dual():
    with socket.socket(socket.AF_INET6) as server:
        server.bind(("::", 0)); server.listen(); connect("127.0.0.1", server.getsockname()[1])
        return server.getsockname()[0]
said(
    plain=served("127.0.0.1"), wild=served("", to="127.0.0.1"), unbound=unbound(),
    dual=dual(), again=tried(again), twice=tried(twice), nobody=tried(nobody),
    child=tried(child),
)
""",
        FREE,
    )  # fmt: skip
    assert found == {
        "plain": "127.0.0.1", "wild": "127.0.0.1", "unbound": "127.0.0.1", "dual": "::ffff:127.0.0.1",
        "again": "passed", "twice": "EADDRINUSE", "nobody": "ECONNREFUSED", "child": "passed",
    }  # fmt: skip


@needs_v6
def test_a_server_of_ones_own_by_ipv6() -> None:
    """`::1`, `::` for IPv6 alone, and `::` for both, which `localhost` finds by either address."""
    found = run_json(
        TCP + """
def both():
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        connect("::1", port, socket.AF_INET6); connect("127.0.0.1", port)
        return server.getsockname()[0]
six = socket.AF_INET6
said(one=served("::1", six), alone=served("::", six, "::1"), both=both())
""",
        FREE,
    )  # fmt: skip
    assert found == {"one": "::1", "alone": "::1", "both": "::ffff:127.0.0.1"}


def test_sockets_keep_what_was_set() -> None:
    """Options, flags, and other descriptors of the same socket; a poll that began before the connection sees it."""
    with hello_server() as gateway:
        found = run_json(
            TCP + """
import fcntl, select
with socket.socket(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as one:
    twin, poll = one.dup(), select.epoll()
    poll.register(twin, select.EPOLLOUT | select.EPOLLIN)
    for level, name, value in ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)):
        one.setsockopt(level, name, value)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, b"\\x07" + bytes(15))
    first = errno.errorcode[one.connect_ex(("127.0.0.1", int(sys.argv[1])))]
    while not poll.poll(10)[0][1] & select.EPOLLIN: pass
    said(
        first=first, word=twin.recv(5).decode(), nodelay=one.getsockopt(6, 1), alive=one.getsockopt(1, socket.SO_KEEPALIVE),
        patience=one.getsockopt(1, socket.SO_RCVTIMEO, 16)[0], cloexec=fcntl.fcntl(one, fcntl.F_GETFD),
        blocking=os.get_blocking(one.fileno()), again=errno.errorcode[one.connect_ex(("127.0.0.1", int(sys.argv[1])))],
        send=one.getsockopt(1, socket.SO_SNDTIMEO, 16) == bytes(16),
    )
""",
            replace(FREE, door=gateway), str(gateway),
        )  # fmt: skip
    assert found == {
        "first": "EINPROGRESS", "word": "hello", "nodelay": 1, "alive": 1, "patience": 7, "cloexec": 1,
        "blocking": False, "again": "EISCONN", "send": True,
    }  # fmt: skip


def test_odd_arguments_get_the_kernels_errors() -> None:
    """No descriptor, no socket, bad memory, bad lengths, AF_UNSPEC, a path, another family, no server yet."""
    found = run_json(
        TCP + """
def raw(fd, data, size=None):
    held = ctypes.create_string_buffer(data, len(data)) if isinstance(data, bytes) else data
    made = libc.connect(fd, held, len(data) if size is None else size)
    return errno.errorcode[ctypes.get_errno()] if made < 0 else "passed"
inet = socket.AF_INET.to_bytes(2, "little") + (9).to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
one, server = socket.socket(), socket.create_server(("127.0.0.1", 0))
near, far = socket.socketpair()
said(
    none=raw(999, inet), file=raw(0, inet), memory=raw(one.fileno(), ctypes.c_void_p(8), 16), short=raw(one.fileno(), inet, 8),
    long=raw(one.fileno(), inet, 4096), negative=raw(one.fileno(), inet, -1), nothing=raw(one.fileno(), inet, 0),
    unspec=raw(one.fileno(), bytes(16)), path=raw(one.fileno(), b"\\1\\0/run/x\\0"), pair=raw(near.fileno(), b"\\1\\0/run/x\\0"),
    family=raw(one.fileno(), (10).to_bytes(2, "little") + bytes(22) + bytes(4)), server=raw(server.fileno(), inet),
    refused=raw(one.fileno(), inet), bound=tried(lambda: server.bind(("127.0.0.1", 0))),
    reuseport=tried(lambda: one.setsockopt(1, 15, 1)), taken=one.getsockopt(1, 15),
)
""",
        FREE,
    )  # fmt: skip
    assert found == {
        "none": "EBADF", "file": "ENOTSOCK", "memory": "EFAULT", "short": "EINVAL", "long": "EINVAL", "negative": "EINVAL",
        "nothing": "EINVAL", "unspec": "passed", "path": "EACCES", "pair": "EACCES", "family": "EAFNOSUPPORT",
        "server": "EISCONN", "refused": "ECONNREFUSED", "bound": "EINVAL", "reuseport": "passed", "taken": 0,
    }  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
def test_a_server_of_node() -> None:
    """It listens on `::`, for both families, and connects to itself by name."""
    script = (
        """
import subprocess
code = """
        + repr(NODE)
        + """
done = subprocess.run(["node", "-e", code], capture_output=True, text=True, timeout=20)
said(out=done.stdout, err=done.stderr)
"""
    )
    assert run_json(script, FREE) == {"out": "hello", "err": ""}


def test_servers_of_asyncio() -> None:
    """On a name that has two addresses, with fifty connections at once; then on no address, which is all."""
    found = run_json(
        """
import asyncio
async def echo(reader, writer):
    writer.write(await reader.readline()); await writer.drain(); writer.close()
async def one(port):
    reader, writer = await asyncio.open_connection("localhost", port)
    writer.write(b"x\\n"); word = await reader.readline(); writer.close()
    return word.decode().strip()
async def main(host):
    with socket.create_server(("127.0.0.1", 0)) as free: port = free.getsockname()[1]
    async with await asyncio.start_server(echo, host, port): return await asyncio.gather(*(one(port) for _ in range(50)))
said(named=asyncio.run(main("localhost")), anywhere=asyncio.run(main(None)))
""",
        FREE,
    )
    assert found == {"named": ["x"] * 50, "anywhere": ["x"] * 50}


@pytest.mark.parametrize("silent", [False, True])
def test_a_listener_is_known_by_its_cookie(silent: bool) -> None:
    """The kernel's answer names the socket itself; without sock_diag its inode does; 0 if there is
    none."""
    tables = SocketDiag()
    tables.is_unavailable = silent
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        places = [
            SocketAddress(socket.AF_INET, bytes((127, 0, 0, 1)), server.getsockname()[1])
            for server in (one, two)
        ]
        assert [tables.find_listener(place) for place in places] == [
            socket_ids(server)[silent] for server in (one, two)
        ]
    assert tables.find_listener(places[0]) == 0
    assert tables.is_unavailable == silent


def test_ports_are_bounded() -> None:
    """Any connecting process in the box gets a port that no one has bound. A port that an agent
    closed counts no more; a connection that its server has left behind does.

    The namespace keeps other programs of this machine from using a port of that number, which
    would count.
    """
    script = (
        TCP
        + """
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
bare = socket.socket(); bare.bind(("127.0.0.1", 0))
more = tried(lambda: bind("127.0.0.1")), tried(lambda: socket.socket().listen())
far = socket.create_connection(held[0].getsockname()); near = held[0].accept()[0]
held.pop(0).close()
left = tried(lambda: bind("127.0.0.1"))
held.pop(0).close()
free = tried(lambda: socket.create_server(("127.0.0.1", 0)).close())
again = [tried(lambda: socket.create_server(("127.0.0.1", 0)).close()) for _ in range(20)]
said(more=more, left=left, free=free, again=sorted(set(again)))
"""
    )
    run = partial(run_json, script, FREE, ports=4)
    found = offline(run) if os.geteuid() == 0 else run()
    assert found == {
        "more": ["ENOBUFS", "ENOBUFS"],
        "left": "ENOBUFS",
        "free": "passed",
        "again": ["passed"],
    }
