"""Leaves the box through the forward proxy: targets that are not granted, forms of an address,
ambiguous requests, tokens of others.
"""

import socket
from typing import Final

from agentbox.sandbox.attacks.attempts import worst
from agentbox.sandbox.attacks.case import PASSED, AttackGroup, TargetInfo, TargetMissing
from agentbox.sandbox.attacks.gateway_client import proxy, token

SUITE = AttackGroup("network")
_REFUSED: Final = {"403": "gateway proxy"}
_ODD: Final = _REFUSED | {"400": "gateway proxy"}
_METADATA: Final = "http://169.254.169.254/latest/meta-data/"
_SECONDS: Final = 10.0
_TUNNEL: Final = "tests/unit/gateway/test_proxy_tunnel.py"
_HTTP: Final = "tests/unit/gateway/test_proxy_http.py"
_TARGET: Final = "tests/unit/gateway/test_target.py"


@SUITE.case(
    "not-granted",
    "asks the proxy for a host that its policy does not grant",
    _REFUSED,
    tests=(f"{_TUNNEL}::test_a_target_outside_of_the_rights_is_403_and_counted",),
)
def _not_granted(_facts: TargetInfo) -> str:
    return worst([_tunnel("192.0.2.1:443"), _plain("http://192.0.2.1/")])


@SUITE.case(
    "metadata",
    "asks the proxy for the metadata service of a cloud",
    _REFUSED,
    tests=(f"{_TARGET}::test_what_an_address_is",),
)
def _metadata(_facts: TargetInfo) -> str:
    addresses = (
        "169.254.169.254:80",
        "[fd00:ec2::254]:80",
        "[::ffff:169.254.169.254]:80",
        "[64:ff9b::a9fe:a9fe]:80",
    )
    return worst([*map(_tunnel, addresses), _plain(_METADATA)])


@SUITE.case(
    "loopback",
    "asks the proxy for the API on loopback",
    _REFUSED,
    tests=(f"{_TARGET}::test_what_an_address_is", f"{_TUNNEL}::test_a_name_that_leads_inside"),
)
def _loopback(facts: TargetInfo) -> str:
    hosts = (
        "127.0.0.1",
        "127.0.0.2",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "localhost",
        "localhost.",
        _hostname(),
    )
    return worst(_tunnel(f"{host}:{port}") for host in hosts for port in facts.ports)


@SUITE.case(
    "mapped-address",
    "writes an internal address as a mapped, translated or tunnelled IPv6 address",
    _REFUSED,
    tests=(f"{_TARGET}::test_what_an_address_is",),
)
def _mapped(facts: TargetInfo) -> str:
    forms = (
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
        "::ffff:0:7f00:1",
        "2606:4700::5efe:7f00:1",
        "2606:4700::200:5efe:7f00:1",
        "64:ff9b:1::7f00:1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "0:0:0:0:0:ffff:a00:1",
    )
    return worst(_tunnel(f"[{form}]:{facts.ports[0]}") for form in forms)


@SUITE.case(
    "decimal-address",
    "writes an internal address as a number, in octal, in hexadecimal, short",
    _ODD,
    tests=(f"{_TARGET}::test_odd_spellings_of_an_address_are_no_address",),
)
def _decimal(facts: TargetInfo) -> str:
    forms = ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "017700000001")
    return worst(_tunnel(f"{form}:{facts.ports[0]}") for form in forms)


@SUITE.case(
    "rebinding",
    "asks repeatedly for a name that resolves to an internal address",
    _ODD,
    tests=(
        f"{_TUNNEL}::test_a_rebinding_name_is_looked_up_once",
        f"{_HTTP}::test_a_redirect_is_the_clients_next_request",
    ),
)
def _rebinding(facts: TargetInfo) -> str:
    """The resolver decides what a name means, so the test with a lying resolver is the proof; this
    is an attempt.
    """
    return worst(_tunnel(f"{name}:{facts.ports[0]}") for name in (_hostname(), "localhost") * 5)


@SUITE.case(
    "redirect",
    "follows a redirect of its own server to the metadata service, and makes the proxy follow it",
    _REFUSED,
    tests=(f"{_HTTP}::test_a_redirect_is_the_clients_next_request",),
)
def _redirect(_facts: TargetInfo) -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=_SECONDS) as client:
            served = server.accept()[0]
            served.sendall(f"HTTP/1.1 302 Found\r\nLocation: {_METADATA}\r\n\r\n".encode())
            target = client.recv(4096).decode().partition("Location: ")[2].strip()
            served.close()
        return worst([_plain(f"http://127.0.0.1:{port}/"), _plain(target)])


@SUITE.case(
    "smuggling",
    "sends ambiguous heads",
    {"400": "gateway proxy", "501": "gateway proxy"},
    tests=(f"{_HTTP}::test_what_two_parsers_may_read_in_two_ways_is_refused",),
)
def _smuggling(_facts: TargetInfo) -> str:
    heads = (
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: a\r\n folded\r\n",
        "X: a\nY: b\r\n",
        "X\0: a\r\n",
        "Content-Length: +4\r\n",
    )
    return worst(
        _classify(proxy("http://192.0.2.1/", method="POST", head=head), "400", "501")
        for head in heads
    )


@SUITE.case(
    "overrides",
    "gives another method, path or host in a header or the query than in the request line",
    {"400": "gateway proxy"},
    tests=(
        f"{_HTTP}::test_a_header_that_names_another_method_or_path_is_refused",
        f"{_HTTP}::test_a_query_that_names_another_method_is_refused",
    ),
    since=2,
)
def _overrides(_facts: TargetInfo) -> str:
    heads = (
        "X-HTTP-Method-Override: DELETE\r\n",
        "X_Method_Override: DELETE\r\n",
        "X-Original-URL: /admin\r\n",
        "X-Rewrite-URL: /admin\r\n",
        "Content_Length: 40\r\n",
        "Transfer_Encoding: chunked\r\n",
    )
    queries = ("%5fmethod=DELETE", "+_method=DELETE", "_method%00=DELETE", "a;_method=DELETE")
    replies = [proxy("http://192.0.2.1/", method="GET", head=head) for head in heads]
    replies += [
        proxy(f"http://192.0.2.1/?{query}", method="POST", head="Content-Length: 0\r\n")
        for query in queries
    ]
    return worst(_classify(reply, "400") for reply in replies)


@SUITE.case(
    "no-token",
    "asks the proxy without a token, with a made-up one, with a part of its own",
    {"407": "gateway proxy"},
    tests=(f"{_TUNNEL}::test_without_a_token_nothing_is_looked_up",),
)
def _no_token(_facts: TargetInfo) -> str:
    agent_token = token()
    forged = (
        "",
        "x" * len(agent_token),
        agent_token[:-1],
        agent_token + "x",
        agent_token.upper() + "0",
    )
    return worst(_classify(proxy("192.0.2.1:443", bearer=bearer), "407") for bearer in forged)


@SUITE.case(
    "ended-token",
    "uses the token of an agent that has ended",
    {"407": "gateway proxy"},
    tests=(
        "tests/unit/gateway/test_following.py::test_the_end_of_an_agent_ends_its_token",
        f"{_TUNNEL}::test_a_right_that_is_taken_back_cuts_the_open_tunnel_at_once",
    ),
)
def _ended_token(facts: TargetInfo) -> str:
    if not facts.ended_token:
        raise TargetMissing("no agent lent its token")
    return _classify(proxy("192.0.2.1:443", bearer=facts.ended_token), "407")


def _tunnel(target: str) -> str:
    return _classify(proxy(target), "403", "400")


def _plain(url: str) -> str:
    return _classify(proxy(url, method="GET"), "403", "400")


def _classify(reply: str, *expected: str) -> str:
    """A target that was contacted without success (502, 504) passed, like one that was reached
    (200).
    """
    return reply if reply in expected or not reply.isdecimal() else f"{PASSED}: {reply}"


def _hostname() -> str:
    return socket.gethostname() or "localhost"
