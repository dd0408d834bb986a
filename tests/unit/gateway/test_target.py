"""From what a client writes to one target, and which addresses are refused."""

import ipaddress

import pytest

from agentbox.gateway.proxy.blocked_addresses import forbidden_kind, is_exempt
from agentbox.gateway.proxy.refusals import ProxyRefusal
from agentbox.gateway.proxy.target import ProxyTarget, parse_connect, parse_url
from agentbox.policy.patterns.hosts import HostPattern


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Example.COM:443", "example.com:443"),
        ("example.com.:443", "example.com:443"),
        ("bücher.example:443", "xn--bcher-kva.example:443"),
        ("１２７.0.0.1:80", "127.0.0.1:80"),
        ("[2001:DB8:0:0::1]:443", "[2001:db8::1]:443"),
        ("[::ffff:10.0.0.1]:443", "10.0.0.1:443"),
        ("under_score.example:1", "under_score.example:1"),
    ],
)
def test_one_form(text: str, value: str) -> None:
    """Case, a final dot, other scripts and long forms of addresses all become one."""
    assert parse_connect(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "example.com", "example.com:0", "example.com:65536", "example.com:+1", "example.com: 1", ":443", "[::1:443",
        "[fe80::1%eth0]:443", "::1:443", "a b:443", "a\u0000b:443", "ex%61mple.com:443", "-a.example:443", "a..b:443",
        "user@host:443", "[nonsense]:443", "example.com:443/", "host:443:443", "٣.example:٤٤٣",
    ],
)  # fmt: skip
def test_no_target(text: str) -> None:
    """400 for what is no name, no address or no port."""
    with pytest.raises(ProxyRefusal) as caught:
        parse_connect(text)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0x7f.1", "017700000001", "127.1", "0177.0.0.1", "1.2.3.4.5", "0"],
)
def test_odd_spellings_of_an_address_are_no_address(host: str) -> None:
    """Decimal, octal, hex and shortened forms, which a resolver would accept."""
    for read, text in ((parse_connect, f"{host}:80"), (parse_url, f"http://{host}/")):
        with pytest.raises(ProxyRefusal) as caught:
            read(text)
        assert caught.value.rule == "address spelling"


def test_of_a_url() -> None:
    """Host, port and path; the Host header has the port only where it is not the scheme's."""
    result = parse_url("http://EXAMPLE.com?a=1")
    assert (result.value, result.path, result.host_header) == (
        "example.com:80",
        "/?a=1",
        "example.com",
    )
    assert parse_url("HTTP://[::ffff:8.8.8.8]:8080/x").host_header == "8.8.8.8:8080"
    for text in (
        "https://a/",
        "http:a",
        "ftp://a/",
        "http://u:p@a/",
        "http://a/b#c",
        "http://a/b c",
        "http:///x",
        "a/b",
        "http://a\\@b/",
    ):
        with pytest.raises(ProxyRefusal):
            parse_url(text)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1", "loopback"), ("127.255.0.9", "loopback"), ("::1", "loopback"), ("0.0.0.0", "unspecified"),
        ("::", "unspecified"), ("10.1.2.3", "private"), ("172.16.0.1", "private"), ("192.168.1.1", "private"),
        ("fd00::1", "private"), ("100.64.0.1", "carrier"), ("169.254.169.254", "link-local"), ("168.63.129.16", "metadata"), ("fe80::1", "link-local"),
        ("224.0.0.1", "multicast"), ("ff02::1", "multicast"), ("255.255.255.255", "reserved"), ("240.0.0.1", "reserved"),
        ("192.0.0.1", "reserved"), ("198.18.0.1", "reserved"), ("0.1.2.3", "reserved"),
        ("::ffff:127.0.0.1", "loopback"), ("::ffff:169.254.169.254", "link-local"), ("64:ff9b::a00:1", "private"),
        ("64:ff9b::a9fe:a9fe", "link-local"), ("64:ff9b:1::1", "transition"), ("2002:7f00:1::", "transition"),
        ("::ffff:0:a00:1", "transition"), ("::ffff:0:808:808", "transition"), ("2606:4700::5efe:a00:1", "transition"),
        ("2606:4700::200:5efe:a9fe:a9fe", "transition"), ("fe80::5efe:a00:1", "link-local"), ("192.0.2.1", "reserved"),
        ("198.51.100.7", "reserved"), ("203.0.113.9", "reserved"), ("192.88.99.1", "reserved"), ("2001:db8::1", "reserved"),
        ("3fff::1", "reserved"), ("2001:2::1", "reserved"), ("100::1", "reserved"), ("5f00::1", "reserved"), ("4000::1", "reserved"),
        ("64:ff9b::c000:201", "reserved"), ("::ffff:192.0.2.1", "reserved"), ("2606:4700::5eff:a00:1", ""),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "transition"), ("::127.0.0.1", "transition"), ("fec0::1", "reserved"),
        ("8.8.8.8", ""), ("2606:4700::1", ""), ("64:ff9b::808:808", ""), ("172.32.0.1", ""), ("100.128.0.1", ""),
    ],
)  # fmt: skip
def test_what_an_address_is(address: str, why: str) -> None:
    """One word each, from a closed set."""
    assert forbidden_kind(ipaddress.ip_address(address)) == why


def test_what_a_name_exempts() -> None:
    """A name exempts what an operator has behind it, never metadata; an address exempts itself, in every form of it."""
    name, address = HostPattern.parse("db.internal:5432"), HostPattern.parse("169.254.169.254:80")
    target = ProxyTarget("db.internal", 5432)
    assert is_exempt(target, ipaddress.ip_address("10.0.0.5"), [name])
    assert is_exempt(target, ipaddress.ip_address("127.0.0.1"), [name])
    assert not is_exempt(target, ipaddress.ip_address("169.254.169.254"), [name])
    assert not is_exempt(ProxyTarget("db.internal", 5433), ipaddress.ip_address("10.0.0.5"), [name])
    assert is_exempt(
        ProxyTarget("metadata", 80), ipaddress.ip_address("::ffff:169.254.169.254"), [address]
    )
