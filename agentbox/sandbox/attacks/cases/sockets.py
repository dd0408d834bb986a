"""Sockets that would leave the agent, or reach the control plane or another agent."""

import os
import socket
from typing import Final

from agentbox.sandbox.attacks import gateway_client
from agentbox.sandbox.attacks.attempts import connect, run_attempt, run_each, worst
from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo, TargetMissing

SUITE = AttackGroup("sockets")
_TESTS: Final = ("tests/unit/sandbox/test_confine.py::test_no_socket_leads_out",)
_FILTER: Final = {"EACCES": "seccomp"}
_PAIR: Final = {"EACCES": "reaper"}
_PAIR_TESTS: Final = ("tests/unit/sandbox/test_buffers.py::test_a_pair_of_another_kind_is_refused",)
_CONNECT: Final = {"EACCES": "reaper"}
_FAST_OPEN: Final = 0x20000000  # MSG_FASTOPEN of linux/socket.h
_MPTCP, _ALG, _VSOCK = 262, 38, 40  # IPPROTO_MPTCP, AF_ALG, AF_VSOCK
_BIND_TO_DEVICE, _BIND_TO_INDEX, _UNICAST_IF = (
    25,
    62,
    50,
)  # SO_BINDTODEVICE, SO_BINDTOIFINDEX, IP_UNICAST_IF
_LO: Final = 1  # index of the loopback interface
_LOOPBACK = "127.0.0.1"
_LOOPBACK_ONLY = "loopback only"


@SUITE.case(
    "supervisor", "connects to the sockets of supervisor and agent host", _FILTER, tests=_TESTS
)
def _supervisor(facts: TargetInfo) -> str:
    return run_each(lambda path: connect(socket.AF_UNIX, socket.SOCK_STREAM, path), facts.sockets)


@SUITE.case("abstract", "connects to an abstract name", _FILTER, tests=_TESTS)
def _abstract(_facts: TargetInfo) -> str:
    return run_attempt(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0agentbox"))


@SUITE.case("pair-to-path", "sends to a path through a datagram pair", _PAIR, tests=_TESTS)
def _pair_to_path(facts: TargetInfo) -> str:
    return run_attempt(_send_to_path, socket.SOCK_DGRAM, facts.sockets[0])


@SUITE.case(
    "raw-pair",
    "sends to a path through a pair of type raw, which is a datagram pair",
    _PAIR,
    tests=_PAIR_TESTS,
    since=2,
)
def _raw_pair(facts: TargetInfo) -> str:
    return run_attempt(_send_to_path, socket.SOCK_RAW, facts.sockets[0])


def _send_to_path(kind: int, path: str) -> None:
    local, remote = socket.socketpair(socket.AF_UNIX, kind)
    with local, remote:
        local.sendto(b"x", path)


@SUITE.case(
    "options",
    "binds a socket to an interface or a route (SO_BINDTODEVICE and similar)",
    {"EPERM": "seccomp"},
    tests=("tests/unit/sandbox/test_confine.py::test_no_option_leads_a_socket_out",),
    since=2,
)
def _options(_facts: TargetInfo) -> str:
    with socket.socket() as sock:
        return worst(
            [
                run_attempt(sock.setsockopt, socket.SOL_SOCKET, _BIND_TO_DEVICE, b"lo"),
                run_attempt(sock.setsockopt, socket.SOL_SOCKET, _BIND_TO_INDEX, _LO),
                run_attempt(sock.setsockopt, socket.IPPROTO_IP, _UNICAST_IF, socket.htonl(_LO)),
            ]
        )


@SUITE.case("datagrams", "sends datagrams (UDP, for example DNS)", _FILTER, tests=_TESTS)
def _datagrams(_facts: TargetInfo) -> str:
    kinds = (socket.AF_INET, socket.AF_INET6)
    return worst(run_attempt(_open_socket, kind, socket.SOCK_DGRAM) for kind in kinds)


@SUITE.case("raw", "opens raw and packet sockets", _FILTER, tests=_TESTS)
def _raw(_facts: TargetInfo) -> str:
    return worst(
        [
            run_attempt(_open_socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
            run_attempt(_open_socket, socket.AF_PACKET, socket.SOCK_RAW),
            run_attempt(_open_socket, socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
        ]
    )


@SUITE.case(
    "families",
    "opens netlink, kernel crypto, hypervisor and multipath sockets",
    _FILTER,
    tests=_TESTS,
)
def _families(_facts: TargetInfo) -> str:
    return worst(
        [
            run_attempt(_open_socket, socket.AF_NETLINK, socket.SOCK_RAW),
            run_attempt(_open_socket, _ALG, socket.SOCK_SEQPACKET),
            run_attempt(_open_socket, _VSOCK, socket.SOCK_STREAM),
            run_attempt(_open_socket, socket.AF_INET, socket.SOCK_STREAM, _MPTCP),
        ]
    )


@SUITE.case(
    "api",
    "connects to the API, the metrics and other ports of the box, without a token",
    _CONNECT,
    tests=("tests/unit/agents/test_confinement.py::test_the_control_plane_is_closed",),
)
def _api(facts: TargetInfo) -> str:
    replies = [run_attempt(_connect_tcp, _LOOPBACK, port) for port in facts.ports]
    return worst(
        [
            *replies,
            *(run_attempt(_connect_tcp, "::1", port, socket.AF_INET6) for port in facts.ports),
        ]
    )


@SUITE.case(
    "gateway-elsewhere", "connects to the gateway's port on another address", _CONNECT, tests=_TESTS
)
def _gateway_elsewhere(facts: TargetInfo) -> str:
    port = gateway_client.port()
    addresses = ("127.0.0.2", "192.0.2.1", facts.secret_address or _LOOPBACK)
    tries = [
        run_attempt(_connect_tcp, address, port) for address in addresses if address != _LOOPBACK
    ]
    return worst(
        [*tries, run_attempt(lambda: _connect_tcp("::ffff:192.0.2.1", port, socket.AF_INET6))]
    )


@SUITE.case(
    "fast-open",
    "sends data in the first packet (TCP Fast Open), which bypasses the rule on ports",
    _FILTER,
    tests=_TESTS,
)
def _fast_open(facts: TargetInfo) -> str:
    def send(port: int) -> None:
        with socket.socket() as sock:
            sock.sendto(b"x", _FAST_OPEN, (_LOOPBACK, port))

    def send_message(port: int) -> None:
        with socket.socket() as sock:
            sock.sendmsg([b"x"], [], _FAST_OPEN, (_LOOPBACK, port))

    return worst(
        run_attempt(sender, port) for port in facts.ports for sender in (send, send_message)
    )


@SUITE.case(
    "fast-open-option",
    "enables the same by a socket option, then connects",
    _CONNECT,
    tests=_TESTS,
)
def _fast_open_option(facts: TargetInfo) -> str:
    def send(port: int) -> None:
        with socket.socket() as sock:
            sock.setsockopt(socket.IPPROTO_TCP, 30, 1)  # TCP_FASTOPEN_CONNECT of linux/tcp.h
            sock.settimeout(3)
            sock.connect((_LOOPBACK, port))

    return worst(run_attempt(send, port) for port in facts.ports)


@SUITE.case(
    "listen",
    "opens a port to the outside, by bind, or by listen alone",
    _CONNECT | {_LOOPBACK_ONLY: "reaper"},
    tests=_TESTS,
)
def _listen(_facts: TargetInfo) -> str:
    return worst(_listen_at(address) for address in ("0.0.0.0", "::", ""))


def _listen_at(address: str) -> str:
    """The result of a server there; "" is `listen` without `bind`. A server on loopback is not
    reachable from outside.
    """
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as sock:
        reply = run_attempt(sock.bind, (address, 0)) if address else PASSED
        reply = run_attempt(sock.listen) if reply == PASSED else reply
        inside = sock.getsockname()[0] in (_LOOPBACK, "::1", f"::ffff:{_LOOPBACK}")
    return _LOOPBACK_ONLY if reply == PASSED and inside else reply


@SUITE.case(
    "take-port",
    "listens on a port of the box",
    _CONNECT | {"EADDRINUSE": "kernel"},
    tests=_TESTS,
)
def _occupy_port(facts: TargetInfo) -> str:
    def serve(port: int) -> None:
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            sock.bind((_LOOPBACK, port))
            sock.listen()

    return worst(run_attempt(serve, port) for port in facts.ports)


@SUITE.case(
    "neighbour-server", "connects to a server of another agent on loopback", _CONNECT, tests=_TESTS
)
def _victim_server(facts: TargetInfo) -> str:
    if not facts.neighbour.port:
        raise TargetMissing("the victim agent could not open a server")
    return run_attempt(lambda: _connect_tcp(_LOOPBACK, facts.neighbour.port))


@SUITE.case(
    "pass-descriptor",
    "receives a connected socket from another process: none can reach it",
    _FILTER,
    tests=_TESTS,
)
def _pass_descriptor(_facts: TargetInfo) -> str:
    """Any inherited socket besides the three streams counts as passed."""
    inherited = []
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                    inherited.append(name)
            except FileNotFoundError:
                continue
    return PASSED if inherited else run_attempt(_open_socket, socket.AF_UNIX, socket.SOCK_STREAM)


def _open_socket(family: int, kind: int, protocol: int = 0) -> None:
    socket.socket(family, kind, protocol).close()


def _connect_tcp(address: str, port: int, family: int = socket.AF_INET) -> None:
    connect(family, socket.SOCK_STREAM, (address, port))
