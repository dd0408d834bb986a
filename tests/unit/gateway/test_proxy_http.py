"""Plain HTTP through a real gateway: what is sent on, what is brought back, and what is refused."""

import asyncio
import time

import pytest
from support.fake_authorizer import right
from support.gateway_fixture import GatewayFixture, serve_tcp
from support.proxy_requests import AUTH, OK, Start, answering


async def test_a_request_is_written_anew(gateway: GatewayFixture) -> None:
    """Host is the target's, hop-by-hop and proxy headers are removed, those that Connection names
    too; one length."""
    seen: list[bytes] = []
    async with serve_tcp(answering(OK, seen, 3)) as port:
        output = await gateway.send_raw(
            f"POST http://127.0.0.1:{port}/a?b=c HTTP/1.1\r\nHost: elsewhere.example\r\n{AUTH}Connection: X-Mine, close\r\n"
            f"X-Mine: 1\r\nX-Kept: yes\r\nTE: trailers\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n"
            f"Content-Length: 3\r\n\r\nabc".encode()
        )
    assert output.startswith(b"HTTP/1.1 200 OK\r\n")
    assert output.endswith(b"\r\n\r\nhi")
    assert seen == [
        f"POST /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Kept: yes\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc".encode()
    ]


async def test_an_answer_is_written_anew(gateway: GatewayFixture) -> None:
    """Both framings in one: the chunks count, and one framing is forwarded; headers of the
    connection are removed."""
    response = (
        b"HTTP/1.1 200 Fine\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n"
        b"Proxy-Authenticate: Basic\r\n\r\n2\r\nhi\r\n0\r\nX-Trailer: 1\r\n\r\n"
    )
    async with serve_tcp(answering(response, [])) as port:
        output = await gateway.send_raw(
            f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n{AUTH}Connection: close\r\n\r\n".encode()
        )
    head, _, body = output.partition(b"\r\n\r\n")
    names = {line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]}
    assert (names, body) == (
        {b"x-end", b"transfer-encoding", b"connection"},
        b"2\r\nhi\r\n0\r\n\r\n",
    )


async def test_requests_one_after_another_on_one_connection(gateway: GatewayFixture) -> None:
    """Each to its own target, pipelined; each is judged by itself."""
    async with serve_tcp(answering(OK, [])) as one, serve_tcp(answering(OK, [])) as other:
        gateway.authorizer.set_rights("one", [right("net", "connect", f"127.0.0.1:{one}")])
        get = f"GET http://127.0.0.1:{one}/ HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n"
        output = await gateway.send_raw(
            f"{get}{get}{get.replace(str(one), str(other))}{get}".encode()
        )
    assert [part[:3] for part in output.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"403"]


async def test_method_and_path_are_asked_for(gateway: GatewayFixture) -> None:
    """A right for GET below /pub lets nothing else through, however the path is spelled."""
    seen: list[bytes] = []
    async with serve_tcp(answering(OK, seen)) as port:
        gateway.authorizer.set_rights(
            "one",
            [right("net", "connect", f"127.0.0.1:{port}", methods=("GET",), paths=("/pub/*",))],
        )

        async def code(method: str, path: str) -> bytes:
            said = f"{method} http://127.0.0.1:{port}{path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n{AUTH}\r\n"
            return (await gateway.send_raw(said.encode()))[9:12]

        assert await code("GET", "/pub/x?q=/../y") == b"200"
        for method, path in (("POST", "/pub/x"), ("GET", "/pub/../etc"), ("GET", "/pub/%2e%2e/etc"), ("GET", "/pub//x"),
                             ("GET", "/pub\\x"), ("GET", "/private"), ("get", "/pub/x")):  # fmt: skip
            assert await code(method, path) in (b"403", b"400"), path
        assert (await gateway.open_tunnel(f"127.0.0.1:{port}"))[2][
            9:12
        ] == "403"  # a tunnel shows neither
    assert len(seen) == 1


@pytest.mark.parametrize(
    "header",
    ["X-HTTP-Method-Override: DELETE", "X-HTTP-Method: DELETE", "x-method-override: PUT", "X_HTTP_Method_Override: DELETE",
     "X-Original-URL: /admin", "X-Rewrite-URL: /admin", "X_Rewrite_Url: /admin", "X-Original-Host: other.example",
     "X.HTTP.Method: DELETE", "X-Override-URL: /admin", "X-Http-Path-Override: /admin", "X-Original-Path: /admin",
     "Content_Length: 40", "Transfer_Encoding: chunked", "Transfer.Encoding: chunked", "Proxy_Connection: close"],
)  # fmt: skip
async def test_a_header_that_names_another_method_or_path_is_refused(
    gateway: GatewayFixture, header: str
) -> None:
    """Some servers apply it: the decision would be about another method than the one executed."""
    seen: list[bytes] = []
    async with serve_tcp(answering(OK, seen)) as port:
        gateway.authorizer.set_rights(
            "one",
            [right("net", "connect", f"127.0.0.1:{port}", methods=("GET",), paths=("/pub/*",))],
        )
        output = await gateway.send_raw(
            f"GET http://127.0.0.1:{port}/pub/x HTTP/1.1\r\nHost: x\r\n{AUTH}{header}\r\n\r\n".encode()
        )
    assert output[9:12] == b"400"
    assert header.partition(":")[0].lower().encode() in output
    assert seen == []


@pytest.mark.parametrize(
    "query",
    ["_method=DELETE", "a=1&_METHOD=put", "%5Fmethod=DELETE", "x-http-method-override=DELETE", "+_method=PUT",
     "%20%09_method=PUT", "_method%00=PUT", "_method%00x=PUT", "a;_method=PUT", "a=1;+%5fmethod%00=PUT", ".method=PUT",
     "%u005fmethod=PUT", "_method"],
)  # fmt: skip
async def test_a_query_that_names_another_method_is_refused(
    gateway: GatewayFixture, query: str
) -> None:
    """However it is spelled; a parameter of a similar name passes, and one in another script."""
    seen: list[bytes] = []
    async with serve_tcp(answering(OK, seen)) as port:
        for request, status in (
            (query, b"400"),
            ("method=DELETE", b"200"),
            ("caf%C3%A9=%E9;a%00b=_method", b"200"),
        ):
            first = f"POST http://127.0.0.1:{port}/x?{request} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n"
            assert (await gateway.send_raw(f"{first}{AUTH}\r\n".encode()))[9:12] == status
    assert len(seen) == 2


async def test_what_a_proxy_would_say_is_not_passed_on(gateway: GatewayFixture) -> None:
    """Servers believe these of whoever stands before them."""
    seen: list[bytes] = []
    async with serve_tcp(answering(OK, seen)) as port:
        await gateway.send_raw(
            f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n{AUTH}Forwarded: host=a\r\nX-Forwarded-Host: a\r\n"
            f"x_forwarded_uri: /admin\r\nX-Forwarded-For: 127.0.0.1\r\nX-Kept: 1\r\nConnection: close\r\n\r\n".encode()
        )
    assert b"orwarded" not in seen[0]
    assert b"X-Kept: 1" in seen[0]


async def test_a_redirect_is_the_clients_next_request(start: Start) -> None:
    """To the metadata address: 302 is returned unchanged, and the request that follows it is
    refused."""
    response = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n"
    async with serve_tcp(answering(response, [])) as port:
        gateway = await start(allow_private=[f"127.0.0.1:{port}"])
        first = await gateway.send_raw(
            f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n".encode()
        )
        assert first.startswith(b"HTTP/1.1 302 ")
    for host in (
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
    ):
        output = await gateway.send_raw(
            f"GET http://{host}/latest/ HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n".encode()
        )
        assert output[9:12] in (b"403", b"400"), host
        assert b"169.254.169.254" in output or b"four decimal numbers" in output
    assert set(gateway.denied_rules) == {"address:link-local", "address spelling"}


SMUGGLING = {
    "two lengths": "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "one length twice": "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "a list of lengths": "Content-Length: 3, 3\r\n\r\nabc",
    "length and chunks": "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two codings": "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding of another name": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding with a tab": "Transfer-Encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n",
    "a space before the colon": "Content-Length : 3\r\n\r\nabc",
    "a coding with a space before the colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a signed length": "Content-Length: +3\r\n\r\nabc",
    "a length in hex": "Content-Length: 0x3\r\n\r\nabc",
    "a negative length": "Content-Length: -1\r\n\r\n",
    "an enormous length": "Content-Length: 99999999999999999999\r\n\r\n",
    "a folded line": "X-A: b\r\n c\r\n\r\n",
    "a folded coding": "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a bare LF": "X-A: b\nContent-Length: 3\r\n\r\nabc",
    "a bare CR": "X-A: b\rContent-Length: 3\r\n\r\nabc",
    "a NUL": "X-A: b\0\r\n\r\n",
    "two hosts": "Host: other.example\r\n\r\n",
    "a name with a space": "X A: b\r\n\r\n",
    "a line without a colon": "nonsense\r\n\r\n",
    "a chunk of no hex size": "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
    "a chunk that ends in a bare LF": "Transfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n",
    "a chunk longer than it says": "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
    "a chunk size without end": "Transfer-Encoding: chunked\r\n\r\n" + "f" * 40 + "\r\n",
}


@pytest.mark.parametrize("case", SMUGGLING)
async def test_what_two_parsers_may_read_in_two_ways_is_refused(
    gateway: GatewayFixture, case: str
) -> None:
    """400 or 501, the connection is closed, and the target gets no second request from it."""
    seen: list[bytes] = []
    async with serve_tcp(answering(OK, seen)) as port:
        smuggled = f"GET http://127.0.0.1:{port}/smuggled HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n"
        output = await gateway.send_raw(
            f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n{AUTH}{SMUGGLING[case]}{smuggled}".encode(
                "latin-1"
            )
        )
    assert output[9:12] in (b"400", b"501"), output
    assert output.count(b"HTTP/1.1 ") == 1
    assert all(b"smuggled" not in head for head in seen)


@pytest.mark.parametrize(
    "first",
    ["GET http://127.0.0.1/ HTTP/1.1\r\n", "GET  http://127.0.0.1/ HTTP/1.1", "GET http://127.0.0.1/ HTTP/2.0", "GET http://127.0.0.1/",
     "G\x00T http://127.0.0.1/ HTTP/1.1", "GET http://127.0.0.1/ HTTP/1.1 x", "GET http://127.0.0.1:99999/ HTTP/1.1",
     "GET https://127.0.0.1/ HTTP/1.1", "GET ws://127.0.0.1/ HTTP/1.1", "CONNECT http://127.0.0.1/ HTTP/1.1", "CONNECT / HTTP/1.1"],
)  # fmt: skip
async def test_odd_first_lines(gateway: GatewayFixture, first: str) -> None:
    """Refused as requests, or read as one with no Host; nothing hangs."""
    output = await gateway.send_raw(f"{first}\r\n{AUTH}\r\n".encode("latin-1"))
    assert output[9:12] in (b"400", b"501"), output


@pytest.mark.timed
async def test_a_slow_head_is_cut_and_holds_up_nobody(
    gateway: GatewayFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 unauthenticated connections send single bytes; the oldest are closed, and an agent is
    served at once meanwhile; the rest end in time."""
    monkeypatch.setattr("agentbox.gateway.proxy.session.HEAD_SECONDS", 2.0)
    dripping = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(300)]
    for _, writer in dripping:
        writer.write(b"GET http://x/ HTTP/1.1\r\nA: b")
    async with serve_tcp(answering(OK, [])) as port:
        began = time.monotonic()
        output = await gateway.send_raw(
            f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n".encode()
        )
        assert output.endswith(b"hi")
        assert time.monotonic() - began < 1
    async with asyncio.timeout(6):
        rest = await asyncio.gather(
            *(reader.read() for reader, _ in dripping), return_exceptions=True
        )
    assert sum(isinstance(one, bytes) and one.startswith(b"HTTP/1.1 408") for one in rest) >= 200
    for _, writer in dripping:
        writer.close()


async def test_a_head_without_end_is_431(gateway: GatewayFixture) -> None:
    """Of 1 MiB in one header, and in many."""
    for flood in ("X: " + "a" * (1 << 20), "X: a\r\n" * 200_000):
        output = await gateway.send_raw(
            f"GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n{AUTH}{flood}\r\n\r\n".encode()
        )
        assert output.startswith(b"HTTP/1.1 431 ")


async def test_an_answer_that_is_no_http_is_502(gateway: GatewayFixture) -> None:
    """Nonsense, two lengths, an unrequested switch of protocols, a head without end, and silence."""
    for response in (b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"",
                   b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000):  # fmt: skip
        async with serve_tcp(answering(response, [])) as port:
            output = await gateway.send_raw(
                f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n".encode()
            )
        assert output.startswith(b"HTTP/1.1 502 "), (response[:40], output[:60])
