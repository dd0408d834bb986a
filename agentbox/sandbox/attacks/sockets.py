"""Sockets that would lead out of the agent, into the control plane, or to a neighbour."""

import os
import socket
from typing import Final

from agentbox.sandbox.attacks import gateway
from agentbox.sandbox.attacks.attempts import connect, each, tried, worst
from agentbox.sandbox.attacks.line import PASSED, Absent, Facts, Table

TABLE = Table("sockets")
_HELD: Final = ("tests/unit/sandbox/test_confine.py::test_no_socket_leads_out",)
_FILTER: Final = {"EACCES": "seccomp"}
_PAIR: Final = {"EACCES": "reaper"}
_PAIRS: Final = ("tests/unit/sandbox/test_buffers.py::test_a_pair_of_another_kind_is_refused",)
_CONNECT: Final = {"EACCES": "reaper"}
_FAST_OPEN: Final = 0x20000000  # MSG_FASTOPEN of linux/socket.h
_MPTCP, _ALG, _VSOCK = 262, 38, 40  # IPPROTO_MPTCP, AF_ALG, AF_VSOCK
_BIND_TO_DEVICE, _BIND_TO_INDEX, _UNICAST_IF = 25, 62, 50  # SO_BINDTODEVICE, SO_BINDTOIFINDEX, IP_UNICAST_IF
_LO: Final = 1  # the number of that interface, whose name only a socket tells
_LOOPBACK = "127.0.0.1"
_INSIDE = "loopback only"


@TABLE.line("supervisor", "connects to the sockets of supervisor and agent host", _FILTER, tests=_HELD)
def _supervisor(facts: Facts) -> str:
    return each(lambda path: connect(socket.AF_UNIX, socket.SOCK_STREAM, path), facts.sockets)


@TABLE.line("abstract", "connects to an abstract name", _FILTER, tests=_HELD)
def _abstract(_facts: Facts) -> str:
    return tried(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0agentbox"))


@TABLE.line("pair-to-path", "turns a datagram pair on a path", _PAIR, tests=_HELD)
def _pair_to_path(facts: Facts) -> str:
    return tried(_sent, socket.SOCK_DGRAM, facts.sockets[0])


@TABLE.line("raw-pair", "turns a pair of type raw, which is a datagram pair, on a path", _PAIR, tests=_PAIRS, since=2)
def _raw_pair(facts: Facts) -> str:
    return tried(_sent, socket.SOCK_RAW, facts.sockets[0])


def _sent(kind: int, path: str) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, kind)
    with near, far:
        near.sendto(b"x", path)


@TABLE.line("options", "ties a socket to an interface or a route (SO_BINDTODEVICE and its kin)", {"EPERM": "seccomp"},
            tests=("tests/unit/sandbox/test_confine.py::test_no_option_leads_a_socket_out",), since=2)  # fmt: skip
def _options(_facts: Facts) -> str:
    with socket.socket() as one:
        return worst([
            tried(one.setsockopt, socket.SOL_SOCKET, _BIND_TO_DEVICE, b"lo"),
            tried(one.setsockopt, socket.SOL_SOCKET, _BIND_TO_INDEX, _LO),
            tried(one.setsockopt, socket.IPPROTO_IP, _UNICAST_IF, socket.htonl(_LO)),
        ])  # fmt: skip


@TABLE.line("datagrams", "sends datagrams (UDP, for DNS and the like)", _FILTER, tests=_HELD)
def _datagrams(_facts: Facts) -> str:
    kinds = (socket.AF_INET, socket.AF_INET6)
    return worst(tried(_made, kind, socket.SOCK_DGRAM) for kind in kinds)


@TABLE.line("raw", "opens raw and packet sockets", _FILTER, tests=_HELD)
def _raw(_facts: Facts) -> str:
    return worst([
        tried(_made, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), tried(_made, socket.AF_PACKET, socket.SOCK_RAW),
        tried(_made, socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
    ])  # fmt: skip


@TABLE.line("families", "opens netlink, kernel crypto, hypervisor and multipath sockets", _FILTER, tests=_HELD)
def _families(_facts: Facts) -> str:
    return worst([
        tried(_made, socket.AF_NETLINK, socket.SOCK_RAW), tried(_made, _ALG, socket.SOCK_SEQPACKET),
        tried(_made, _VSOCK, socket.SOCK_STREAM), tried(_made, socket.AF_INET, socket.SOCK_STREAM, _MPTCP),
    ])  # fmt: skip


@TABLE.line("api", "connects to the API, the metrics and other ports of the box, without a token", _CONNECT,
            tests=("tests/unit/agents/test_confinement.py::test_the_control_plane_is_closed",))  # fmt: skip
def _api(facts: Facts) -> str:
    replies = [tried(_to, _LOOPBACK, port) for port in facts.ports]
    return worst([*replies, *(tried(_to, "::1", port, socket.AF_INET6) for port in facts.ports)])


@TABLE.line("gateway-elsewhere", "connects to the gateway's port on another address", _CONNECT, tests=_HELD)
def _gateway_elsewhere(facts: Facts) -> str:
    port = gateway.port()
    addresses = ("127.0.0.2", "192.0.2.1", facts.secret_address or _LOOPBACK)
    tries = [tried(_to, at, port) for at in addresses if at != _LOOPBACK]
    return worst([*tries, tried(lambda: _to("::ffff:192.0.2.1", port, socket.AF_INET6))])


@TABLE.line(
    "fast-open", "sends in the first packet (TCP Fast Open), which skips the rule on ports", _FILTER, tests=_HELD
)
def _fast_open(facts: Facts) -> str:
    def send(port: int) -> None:
        with socket.socket() as one:
            one.sendto(b"x", _FAST_OPEN, (_LOOPBACK, port))

    def send_message(port: int) -> None:
        with socket.socket() as one:
            one.sendmsg([b"x"], [], _FAST_OPEN, (_LOOPBACK, port))

    return worst(tried(one, port) for port in facts.ports for one in (send, send_message))


@TABLE.line("fast-open-option", "asks for the same by an option of the socket, then connects", _CONNECT, tests=_HELD)
def _fast_open_option(facts: Facts) -> str:
    def send(port: int) -> None:
        with socket.socket() as one:
            one.setsockopt(socket.IPPROTO_TCP, 30, 1)  # TCP_FASTOPEN_CONNECT of linux/tcp.h
            one.settimeout(3)
            one.connect((_LOOPBACK, port))

    return worst(tried(send, port) for port in facts.ports)


@TABLE.line("listen", "opens a port to the outside, by bind and by listen alone", _CONNECT | {_INSIDE: "reaper"},
            tests=_HELD)  # fmt: skip
def _listen(_facts: Facts) -> str:
    return worst(_where(address) for address in ("0.0.0.0", "::", ""))


def _where(address: str) -> str:
    """What came of a server there; "" is `listen` without `bind`. What is on loopback reaches nobody outside."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as one:
        reply = tried(one.bind, (address, 0)) if address else PASSED
        reply = tried(one.listen) if reply == PASSED else reply
        inside = one.getsockname()[0] in (_LOOPBACK, "::1", f"::ffff:{_LOOPBACK}")
    return _INSIDE if reply == PASSED and inside else reply


@TABLE.line("take-port", "listens on a port of the box's own", _CONNECT | {"EADDRINUSE": "kernel"}, tests=_HELD)
def _take_port(facts: Facts) -> str:
    def serve(port: int) -> None:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.bind((_LOOPBACK, port))
            one.listen()

    return worst(tried(serve, port) for port in facts.ports)


@TABLE.line("neighbour-server", "connects to a server of another agent on loopback", _CONNECT, tests=_HELD)
def _neighbour_server(facts: Facts) -> str:
    if not facts.neighbour.port:
        raise Absent("the neighbour could open no server")
    return tried(lambda: _to(_LOOPBACK, facts.neighbour.port))


@TABLE.line("pass-descriptor", "is handed a socket that a stranger connected: none can reach it", _FILTER, tests=_HELD)
def _pass_descriptor(_facts: Facts) -> str:
    """Every descriptor but the three streams and what this program opened is one too many."""
    inherited = []
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                    inherited.append(name)
            except FileNotFoundError:
                continue
    return PASSED if inherited else tried(_made, socket.AF_UNIX, socket.SOCK_STREAM)


def _made(family: int, kind: int, protocol: int = 0) -> None:
    socket.socket(family, kind, protocol).close()


def _to(address: str, port: int, family: int = socket.AF_INET) -> None:
    connect(family, socket.SOCK_STREAM, (address, port))
