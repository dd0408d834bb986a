"""What a request is judged by before its handler sees it."""

import re
from dataclasses import replace

import pytest
from support.api_box import api_plan

from agentbox.core.http.body import reject_body
from agentbox.core.http.headers import (
    allowed_hosts,
    check_accept,
    check_content_type,
    check_host,
    decode_headers,
    parse_host,
    request_id,
    trace_id,
)
from agentbox.core.http.problems import Misdirected, NotAcceptable, UnsupportedMediaType
from agentbox.core.slot_errors import ValueTooLarge

PLAN = api_plan()
PUBLIC = replace(
    PLAN,
    api=replace(PLAN.api, public_base="https://box.example.org:8443/x", publish_address="10.1.2.3"),
)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:80",
        "localhost:",
        "127.0.0.1:9",
        "[::1]",
        "box.example.org:8443",
        "10.1.2.3",
    ],
)
def test_configured_and_loopback_hosts_pass(host: str) -> None:
    """Case and port do not matter."""
    check_host({"host": host}, allowed_hosts(PUBLIC))


@pytest.mark.parametrize(
    "host",
    ["", "example.org", "box.example.org.evil", "10.1.2.4", "[::2]", "[", "a b", "::1:x", "x@127.0.0.1", "evil@localhost:80",
     "127.0.0.1#.evil", "127.0.0.1/.evil", "127.0.0.1?.evil", "localhost:80@evil", "localhost:x", "[::1]x",
     "[::1", "::1", "127.0.0.1\\.evil", "local\thost", "[::1%lo]", "//localhost", "localhost\n"],
)  # fmt: skip
def test_other_hosts_do_not(host: str) -> None:
    """Anything that is not exactly one of them is misdirected, nonsense too."""
    with pytest.raises(Misdirected):
        check_host({"host": host}, allowed_hosts(PUBLIC))


def test_a_host_is_read_without_port_and_brackets() -> None:
    """Nothing else than a host and a port is one."""
    assert [parse_host(text) for text in ("A.b:1", "[::1]:9090", "")] == ["a.b", "::1", ""]


@pytest.mark.parametrize(
    "accept", ["*/*", "application/*", "application/json", "text/html, */*;q=0.1"]
)
def test_accept_that_covers_json_passes(accept: str) -> None:
    """Ranges and parameters are understood."""
    check_accept({"accept": accept}, "application/json")


def test_accept_that_excludes_json_does_not() -> None:
    """The refusal names what is offered."""
    with pytest.raises(NotAcceptable) as caught:
        check_accept({"accept": "text/html"}, "application/json")
    assert caught.value.members["offered"] == ["application/json"]


def test_a_media_type_is_read_without_parameters() -> None:
    """`charset` does not matter; another type does."""
    assert (
        check_content_type(
            {"content-type": "Application/JSON; charset=utf-8"}, ("application/json",)
        )
        == "application/json"
    )
    with pytest.raises(UnsupportedMediaType):
        check_content_type({}, ("application/json",))


@pytest.mark.parametrize(
    "headers", [{"content-length": "1"}, {"transfer-encoding": "chunked"}, {"content-length": "x"}]
)
def test_any_announced_body_is_refused(headers: dict[str, str]) -> None:
    """Where a route accepts none."""
    with pytest.raises(ValueTooLarge):
        reject_body(headers)
    reject_body({"content-length": "0"})


def test_request_ids_are_plain_words() -> None:
    """A caller's id is accepted only when it can be printed anywhere."""
    assert request_id({"x-request-id": "a.b_c:1-2"}) == "a.b_c:1-2"
    for odd in ("", "a b", "a\n", "x" * 65, "é"):
        assert request_id({"x-request-id": odd}) != odd


def test_the_last_of_repeated_headers_counts() -> None:
    """Names are lower case."""
    assert decode_headers([(b"A", b"1"), (b"a", b"2")]) == {"a": "2"}


VALID = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_the_trace_of_a_valid_traceparent() -> None:
    """Also of a later version, which may have more fields (W3C Trace Context 3.2)."""
    assert trace_id({"traceparent": VALID}) == VALID[3:35]
    assert trace_id({"traceparent": f"01{VALID[2:]}-more"}) == VALID[3:35]


@pytest.mark.parametrize(
    "given",
    [
        "", "x", VALID.upper(), f"{VALID}-more", f"ff{VALID[2:]}", VALID[:-1], f"{VALID}\n", VALID.replace("-", " "),
        f"00-{'0' * 32}{VALID[35:]}", f"{VALID[:36]}{'0' * 16}-01",
    ],
)  # fmt: skip
def test_any_other_traceparent_counts_for_none(given: str) -> None:
    """Then the trace has a new id of 32 hexadecimal digits."""
    found = trace_id({"traceparent": given})
    assert re.fullmatch("[0-9a-f]{32}", found)
    assert found != VALID[3:35]
