"""One client at a limit, and one beside it that does not notice."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from raw import ask, connect, read
from support.api_box import TOKEN, ApiBox

AUTH = f"Authorization: Bearer {TOKEN}"
NOTICED = 2.0  # seconds: far above what a busy machine adds, far below what any limit waits


@contextlib.contextmanager
def neighbour(box: ApiBox) -> Iterator[list[float]]:
    """Sends requests continuously on connections of its own; each response is 200, and none takes
    long."""
    taken, over, wrong = [], threading.Event(), []

    def work() -> None:
        while not over.is_set():
            began = time.monotonic()
            answer = ask(box.plan.api.port, f"GET /v1/beads?limit=1 HTTP/1.1\n{AUTH}")
            taken.append(time.monotonic() - began)
            if answer.status != 200:
                wrong.append(answer)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield taken
    finally:
        over.set()
        thread.join()
    assert wrong == []
    assert len(taken) > 5
    assert max(taken) < NOTICED


def a_dripping_body_is_refused(box: ApiBox) -> None:
    """408 after 10 s of a few bytes a second, announced or in chunks, though no pause is as long as an idle connection's."""
    head = f"POST /v1/beads/epics HTTP/1.1\r\nHost: localhost\r\n{AUTH}\r\nContent-Type: application/json\r\n"
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(box.plan.api.port, 30)) for _ in range(2)]
        socks[0].sendall(f"{head}Content-Length: 100000\r\n\r\n".encode())
        socks[1].sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        began, answers = time.monotonic(), []
        while len(answers) < 2 and time.monotonic() - began < 25:
            for sock, drop in ((socks[0], b"x"), (socks[1], b"1\r\nx\r\n")):
                with contextlib.suppress(OSError):
                    sock.sendall(drop)
            time.sleep(0.5)
            ready = [sock for sock in socks if _has_bytes(sock)]
            answers = [*answers, *(read(sock) for sock in ready)]
            socks = [sock for sock in socks if sock not in ready]
        assert [answer.status for answer in answers] == [408, 408]
        assert 9 < time.monotonic() - began < 20


def _has_bytes(sock: socket.socket) -> bool:
    sock.settimeout(0.01)
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        sock.settimeout(30)


def a_slow_but_steady_body_is_taken(box: ApiBox) -> None:
    """Some KiB a second for longer than any timeout: the complete object arrives."""
    size = 100_000
    with connect(box.plan.api.port, 30) as sock:
        sock.sendall(
            f"PUT /v1/pods/steady HTTP/1.1\r\nHost: localhost\r\n{AUTH}\r\nContent-Length: {size}\r\n\r\n".encode()
        )
        began, sent = time.monotonic(), 0
        while sent < size:  # 8 KB a second
            sock.sendall(b"x" * 4000)
            sent += 4000
            time.sleep(max(0.0, began + sent / 8000 - time.monotonic()))
        assert read(sock).status == 201


@pytest.mark.timed
def test_idle_streams_cost_a_neighbour_nothing(box: ApiBox) -> None:
    """200 readers of the journal wait; what is appended reaches each, and their places are free when they go."""
    line = f"GET /v1/events/stream?types=crowd.tick HTTP/1.1\r\nHost: localhost\r\n{AUTH}\r\n\r\n".encode()
    with neighbour(box), contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(box.plan.api.port, 20)) for _ in range(200)]
        for sock in socks:
            sock.sendall(line)
        for sock in socks:
            assert b"200 OK" in sock.recv(4096)
        with box.client() as client:
            client.call(
                "append_events", body={"events": [{"type": "crowd.tick", "data": {"n": 1}}]}
            )
        for sock in socks:
            seen = b""
            while b"crowd.tick" not in seen:
                piece = sock.recv(65536)
                assert piece, "a stream was cut"
                seen += piece
    began = time.monotonic()
    while ask(box.plan.api.port, f"GET /v1/beads HTTP/1.1\n{AUTH}").status != 200:
        assert time.monotonic() - began < 10


def a_stalled_reader_is_cut(box: ApiBox) -> None:
    """It reads nothing for 30 s while much is pending: its connection ends, and a resume by id
    returns the rest."""
    with box.client() as client:
        first = client.call("append_events", body={"events": [{"type": "flood.x", "data": {}}]})[
            "first_seq"
        ]
        with connect(box.plan.api.port, 60) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(
                f"GET /v1/events/stream?since={first} HTTP/1.1\r\nHost: localhost\r\n{AUTH}\r\n\r\n".encode()
            )
            batch = {"events": [{"type": "flood.x", "data": {"x": "y" * 60_000}}] * 10}
            for _ in range(
                20
            ):  # 12 MB: more than the kernel buffers for a reader that does not read
                last = client.call("append_events", body=batch)["last_seq"]
            began = time.monotonic()
            while "reader stalled" not in box.log.read_text():
                assert time.monotonic() - began < 45
                time.sleep(0.5)
            assert time.monotonic() - began > 20
        rest = client.stream("stream_events", query={"types": "flood.x"}, since=str(last - 3))
        assert [next(rest).id for _ in range(3)] == [str(last - 2), str(last - 1), str(last)]


@pytest.mark.timed
@pytest.mark.timeout(120)
def test_slow_ones_are_told_apart_and_disturb_nobody(box: ApiBox) -> None:
    """They mostly wait, so that they wait together."""
    slow = (a_dripping_body_is_refused, a_slow_but_steady_body_is_taken, a_stalled_reader_is_cut)
    with neighbour(box), ThreadPoolExecutor(len(slow)) as pool:
        for one in [pool.submit(test, box) for test in slow]:
            one.result()
