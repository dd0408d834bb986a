"""What an agent's sockets keep in the kernel is limited, whatever happens to their descriptors."""

import os
import socket

import pytest
from support.confined_process import EVERYWHERE, run_json

from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.seccomp.installation import current_machine
from agentbox.sandbox.syscalls.buffers import CONNECTION_BYTES, END_BYTES
from agentbox.sandbox.syscalls.socket_diag import SocketDiag

MIB = 1 << 20
MEMORY = 64 * MIB
SHARE = MEMORY // 4
FREE = Confinement(grants=(EVERYWHERE,))
FLOODS = """
import array
def fill(one):
    one.setblocking(False); full = 0
    try:
        while True: full += one.send(bytes(1 << 16))
    except BlockingIOError: return full
def flood(make, most=300):
    made = []
    try:
        while len(made) < most: made.append(make())
    except OSError as error: return made, errno.errorcode[error.errno]
    return made, "passed"
def filled(pairs): return sum(fill(one) for pair in pairs for one in pair)
def close(pairs):
    for pair in pairs:
        for one in pair: one.close()
server = socket.create_server(("127.0.0.1", 0), backlog=600)
def both(): return socket.create_connection(server.getsockname()), server.accept()[0]
"""


def pushed(script: str) -> dict[str, object]:
    return run_json(FLOODS + script, FREE, memory=MEMORY)


def test_pairs_end_below_the_memory() -> None:
    """Full in both directions, they have less than their share; when they are closed there is
    capacity again."""
    found = pushed("""
pairs, why = flood(socket.socketpair)
held = filled(pairs); close(pairs)
again, _ = flood(socket.socketpair)
said(why=why, held=held, pairs=len(pairs), again=len(again))
""")
    assert found["why"] == "ENOBUFS"
    assert isinstance(found["held"], int)
    assert MIB < found["held"] < SHARE
    assert found["pairs"] == found["again"] == SHARE // (2 * END_BYTES)


def test_connections_end_below_the_memory() -> None:
    """Of both ends; when they are closed there is capacity again."""
    found = pushed("""
pairs, why = flood(both)
held = filled(pairs); close(pairs)
again, _ = flood(both)
said(why=why, held=held, pairs=len(pairs), again=len(again))
""")
    assert found["why"] == "ENOBUFS"
    assert isinstance(found["held"], int)
    assert MIB < found["held"] < SHARE
    assert found["pairs"] == found["again"] == SHARE // CONNECTION_BYTES


def test_what_is_closed_and_holds_data_still_counts() -> None:
    """If one end is closed the other keeps what was sent, and the kernel what could not be sent."""
    found = pushed("""
held = []
def left():
    near, far = both()
    fill(near); near.close()
    held.append(far)
_, why = flood(left)
said(why=why, held=len(held))
""")
    assert found == {"why": "ENOBUFS", "held": SHARE // CONNECTION_BYTES}


def test_one_port_is_not_one_connection() -> None:
    """From one port to many servers."""
    found = pushed("""
servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(40)]
targets = iter(servers)
def same():
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    one.connect(next(targets).getsockname())
    return one
with socket.socket() as free:
    free.bind(("127.0.0.1", 0)); port = free.getsockname()[1]
made, why = flood(same, 40)
said(why=why, made=len(made))
""")
    assert found == {"why": "ENOBUFS", "made": SHARE // CONNECTION_BYTES}


def test_what_is_under_way_in_a_socket_still_counts() -> None:
    """Ends that no process has open."""
    found = pushed("""
near, far = socket.socketpair()
def sent():
    ends = socket.socketpair()
    near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [one.fileno() for one in ends]))])
    for one in ends: one.close()
made, why = flood(sent)
said(why=why, made=len(made))
""")
    assert found == {"why": "ENOBUFS", "made": SHARE // (2 * END_BYTES) - 1}


def test_a_name_of_several_lines_is_no_row() -> None:
    """The kernel writes names of sockets as they are."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"\0agentbox-{os.getpid()}\nx y\n1 2 3 4 5 6 seven\n")
        assert os.fstat(one.fileno()).st_ino in SocketDiag.unix_inodes()


def test_nobody_changes_the_size() -> None:
    """Requests are answered as where the kernel sets less; a buffer stays as it was, of the
    accepted end too."""
    found = pushed("""
one, far = both(); near, _ = socket.socketpair()
ends = (one, far, near)
def sizes(): return [end.getsockopt(socket.SOL_SOCKET, kind) for end in ends for kind in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
before = sizes()
asked = [tried(lambda: end.setsockopt(socket.SOL_SOCKET, kind, 1 << 22)) for end in ends for kind in (7, 8)]
forced = [tried(lambda: end.setsockopt(socket.SOL_SOCKET, kind, 1 << 22)) for end in ends for kind in (32, 33, 72, 73)]
said(same=sizes() == before, tcp=before[:4], asked=sorted(set(asked)), forced=sorted(set(forced)))
""")
    assert found == {"same": True, "tcp": [256 << 10] * 4, "asked": ["passed"], "forced": ["EPERM"]}


def test_a_pair_is_a_pair() -> None:
    """Both kinds, their flags, threads that share them, and a number of descriptors that is used up."""
    found = pushed("""
import resource
near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
near.send(b"ab"); near.send(b"c")
plain = ctypes.CDLL(None, use_errno=True)
numbers = (ctypes.c_int * 2)()
def raw(kind):
    assert plain.socketpair(1, kind, 0, numbers) == 0
    return [os.get_blocking(numbers[0]), os.get_inheritable(numbers[1])]
flags = [raw(1), raw(1 | os.O_NONBLOCK), raw(1 | os.O_CLOEXEC)]
nowhere = "passed" if plain.socketpair(1, 1, 0, None) == 0 else errno.errorcode[ctypes.get_errno()]
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
full = tried(socket.socketpair)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
said(packets=[far.recv(9).decode(), far.recv(9).decode()], flags=flags, nowhere=nowhere, full=full)
""")
    assert found == {
        "packets": ["ab", "c"], "flags": [[True, True], [False, True], [True, False]], "nowhere": "EFAULT", "full": "EMFILE",
    }  # fmt: skip


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_RDM, 0, 6, 10])
def test_a_pair_of_another_kind_is_refused(kind: int) -> None:
    """One of type raw is a datagram socket, which reaches sockets by their path; other families have pairs too."""
    number = current_machine().number("socketpair")
    found = run_json(
        f"said(of=[call({number}, *kind, 0, 0) for kind in ((1, {kind}), (2, 1), (30, 1))])", FREE
    )
    assert found == {"of": ["EACCES"] * 3}
