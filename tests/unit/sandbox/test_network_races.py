"""Connections of a process that races, floods, interrupts and intercepts."""

import errno
import os
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace

import pytest
from support.confined_process import EVERYWHERE, TCP, hello_server, run_json, run_python

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.syscalls import connect
from agentbox.sandbox.syscalls.addresses import SocketAddress

FREE = Confinement(grants=(EVERYWHERE,))


def test_an_address_that_changes_during_the_call_leads_nowhere_else() -> None:
    """A second thread writes the closed port into the address all the time: no connection ever arrives there."""
    arrived: list[object] = []
    with hello_server() as gateway, socket.create_server(("127.0.0.1", 0), backlog=1000) as closed:
        closed.setblocking(False)
        found = run_json(
            TCP + """
door, closed = (int(word).to_bytes(2, "big") for word in sys.argv[1:])
inet = socket.AF_INET.to_bytes(2, "little") + door + bytes([127, 0, 0, 1]) + bytes(8)
held, over = ctypes.create_string_buffer(inet, 16), False
address = ctypes.addressof(held)
def swap():
    while not over:
        ctypes.memmove(address + 2, closed, 2); ctypes.memmove(address + 2, door, 2)
thread = threading.Thread(target=swap); thread.start()
sys.setswitchinterval(1e-6)
words = {}
for _ in range(1500):
    with socket.socket() as one:
        made = libc.connect(one.fileno(), held, 16)
        word = "passed" if made == 0 else errno.errorcode[ctypes.get_errno()]
        words[word] = words.get(word, 0) + 1
over = True
said(words=words)
""",
            replace(FREE, door=gateway), str(gateway), str(closed.getsockname()[1]),
        )["words"]  # fmt: skip
        with suppress(BlockingIOError):
            arrived.append(closed.accept())
    assert isinstance(found, dict)
    assert set(found) <= {"passed", "EACCES"}, found
    assert found["passed"] > 0
    assert not arrived


def test_many_threads_at_once() -> None:
    """64 threads, half of them with sockets that never wait: each is served."""
    found = run_json(
        TCP + """
server = socket.create_server(("127.0.0.1", 0), backlog=128)
words = []
def one():
    with socket.create_connection(server.getsockname(), timeout=20) as near: words.append(near.recv(1))
def blocking():
    with socket.socket() as near: near.connect(server.getsockname()); words.append(near.recv(1))
threads = [threading.Thread(target=one if at % 2 else blocking) for at in range(64)]
for thread in threads: thread.start()
for _ in threads:
    far = server.accept()[0]; far.sendall(b"x"); far.close()
for thread in threads: thread.join()
said(count=words.count(b"x"))
""",
        FREE,
    )  # fmt: skip
    assert found == {"count": 64}


def test_a_signal_interrupts_a_connection_that_waits() -> None:
    """A full queue: a handler runs, the call returns EINTR or continues, SO_SNDTIMEO ends it, and
    other calls are answered."""
    found = run_json(
        TCP + """
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(0)
full = [socket.socket() for _ in range(4)]
for one in full: one.setblocking(False); one.connect_ex(server.getsockname())
class Rang(Exception): pass
def ring(*_): raise Rang
signal.signal(signal.SIGALRM, ring)
start = time.monotonic()
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    with socket.socket() as one: one.connect(server.getsockname())
    rang = False
except Rang: rang = True
middle = time.monotonic()
with socket.socket() as one:
    one.setsockopt(1, socket.SO_SNDTIMEO, (0).to_bytes(8, "little") + (300000).to_bytes(8, "little"))
    timed = tried(lambda: one.connect(server.getsockname()))
said(rang=rang, soon=middle - start < 1, timed=timed, at_its_time=0.2 < time.monotonic() - middle < 1)
""",
        FREE,
    )  # fmt: skip
    assert found == {"rang": True, "soon": True, "timed": "EINPROGRESS", "at_its_time": True}


class Stubborn(socket.socket):
    """As if another thread of the agent reset its timeout at once, every time."""

    def setsockopt(self, *arguments: object) -> None:  # type: ignore[override]
        """Nothing remains."""


@pytest.mark.timed
def test_a_socket_that_will_wait_keeps_nobody() -> None:
    """A connection to a full queue is given up after a moment, though the socket has no timeout."""
    before = signal.signal(signal.SIGALRM, connect.on_alarm)
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for one in (first, second):
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        with Stubborn(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as stuck:
            os.set_blocking(stuck.fileno(), True)
            place = SocketAddress(socket.AF_INET, bytes((127, 0, 0, 1)), server.getsockname()[1])
            start = time.monotonic()
            assert connect.try_connect(stuck, place) == errno.EINTR
            assert time.monotonic() - start < 2
    signal.signal(signal.SIGALRM, before)


def test_sockets_without_a_peer_are_few() -> None:
    """Hundreds that are never connected are refused like too many files, and allowed again with the
    first that is closed."""
    found = run_json(
        TCP + """
held = []
def fill():
    while True: held.append(socket.socket())
full = tried(fill)
count = len(held)
for one in held: one.close()
said(full=full, count=count, served=served("127.0.0.1"))
""",
        FREE,
    )  # fmt: skip
    assert found == {"full": "EMFILE", "count": 256, "served": "127.0.0.1"}


def test_a_process_that_is_killed_while_it_waits_costs_nothing() -> None:
    """Its connection is dropped; the next call is answered."""
    found = run_json(
        TCP + """
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(0)
full = [socket.socket() for _ in range(4)]
for one in full: one.setblocking(False); one.connect_ex(server.getsockname())
statuses = []
for _ in range(5):
    if (pid := os.fork()) == 0: connect(*server.getsockname())
    time.sleep(0.1); os.kill(pid, signal.SIGTERM); statuses.append(os.waitpid(pid, 0)[1])
said(statuses=statuses, served=served("127.0.0.1"))
""",
        FREE,
    )  # fmt: skip
    assert found == {"statuses": [15] * 5, "served": "127.0.0.1"}


def test_a_neighbour_cannot_reach_a_server() -> None:
    """Nor bind its port, nor wait at a port for a program that will listen there."""
    server = socket.create_server(
        ("127.0.0.1", 0)
    )  # stands for another agent's: it is no process of this one's tree
    port = str(server.getsockname()[1])
    script = (
        TCP
        + """
port = int(sys.argv[1])
def late():
    with socket.socket() as one:
        one.setsockopt(1, socket.SO_REUSEADDR, 1); one.setsockopt(1, socket.SO_REUSEPORT, 1)
        one.bind(("127.0.0.1", port)); one.listen()
said(reach=tried(lambda: connect("127.0.0.1", port)), take=tried(late))
"""
    )
    with server:
        assert run_json(script, FREE, port) == {"reach": "EACCES", "take": "EADDRINUSE"}


def test_waiting_for_an_earlier_listener_is_no_way_in() -> None:
    """A connection of another process still waits at a port: no other may begin to listen there."""
    with socket.socket() as first, socket.socket() as one, socket.socket() as two:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        first.bind(("127.0.0.1", 0))
        first.listen(0)
        for waiting in (one, two):
            waiting.setblocking(False)
            waiting.connect_ex(first.getsockname())
        with socket.socket() as third:
            third.setblocking(False)
            third.connect_ex(first.getsockname())
            port = str(first.getsockname()[1])
            first.close()
            found = run_python(
                "with socket.socket() as one:\n one.setsockopt(1, 2, 1); one.bind(('127.0.0.1', int(sys.argv[1])))\n"
                " said(word=tried(one.listen))", FREE, None, port,
            )  # fmt: skip
    assert "EADDRINUSE" in found.stdout, (found.stdout, found.stderr)
