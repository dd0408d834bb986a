"""How programs of a box reach others: slots, the mesh, providers, traces and Telegram, each through
a proxy that reads TLS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from agentbox_testkit.wait import wait_until
from support.authority import Authority
from support.intercepting_proxy import InterceptingProxy
from support.package_index import serve_files

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.adapters.runtime.http_connection import create_transport
from agentbox.api.tracing import make_spans
from agentbox.box.programs.telegram.chat_sender import ChatSender
from agentbox.box.supervision.outgoing_files import write_outgoing
from agentbox.core.errors import AgentboxError
from agentbox.core.paths import Paths
from agentbox.manifest.slot_options import HttpOptions
from agentbox.mesh.client.host_connection import HostConnection, HostRefused, HostUnreachable
from agentbox.plan.tables import NetworkPlan
from agentbox.policy.outgoing import Outgoing

HOST, ACCOUNT = "other.example", "jane:pa55 word"


class Place(NamedTuple):
    """A box that was told of the proxy by its boot, and the proxy."""

    paths: Paths
    proxy: InterceptingProxy
    authority: Authority


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/x").write_text("content")
    paths, authority = Paths(tmp_path / "box"), Authority(tmp_path)
    for directory in (paths.run, paths.mounted_secrets):
        directory.mkdir(parents=True)
    paths.mounted_authorities.write_bytes(authority.root.read_bytes())
    (paths.mounted_secrets / "PROXY_ACCOUNT").write_text(ACCOUNT)
    with (
        serve_files(tmp_path / "site") as port,
        InterceptingProxy(authority, {HOST: port}, ACCOUNT).listen() as proxy,
    ):
        write_outgoing(paths, network(f"http://127.0.0.1:{proxy.port}"))
        yield Place(paths, proxy, authority)


def network(proxy: str, **changes: object) -> NetworkPlan:
    fields = {
        "proxy": proxy,
        "proxy_env": "PROXY_ACCOUNT",
        "no_proxy": (),
        "ca_bundle": "/etc/corp.pem",
        "resolve": "local",
    }
    return NetworkPlan(**{**fields, **changes})  # type: ignore[arg-type]


def slot(paths: Paths, ca_file: str = "") -> SlotConfig[HttpOptions]:
    options = HttpOptions(endpoint=f"https://{HOST}", ca_file=ca_file)
    return SlotConfig(
        slot="events", use="external-http", required=False, paths=paths, options=options
    )


async def got(config: SlotConfig[HttpOptions]) -> str:
    transport = create_transport(config, f"https://{HOST}", max_idle=1)
    async with httpx.AsyncClient(transport=transport, trust_env=False) as client:
        return (await client.get(f"https://{HOST}/x")).text


async def test_an_external_slot(place: Place) -> None:
    """As the user of the proxy."""
    assert await got(slot(place.paths)) == "content"
    assert [(item.line, item.account) for item in place.proxy.seen] == [
        (f"CONNECT {HOST}:443 HTTP/1.1", ACCOUNT)
    ]


async def test_a_pinned_slot_trusts_the_operator_too(place: Place, tmp_path: Path) -> None:
    """`ca_file` stays a pin: the public authorities are not trusted beside it."""
    (tmp_path / "pin").mkdir()
    pin = Authority(tmp_path / "pin", "Pin CA")
    target = place.paths.resolve("/etc/agentbox.toml/pin.pem")
    target.parent.mkdir(parents=True)
    target.write_bytes(pin.root.read_bytes())
    config = slot(place.paths, "/etc/agentbox.toml/pin.pem")
    assert await got(config) == "content"
    context = Outgoing.read(place.paths).tls(target)
    assert context is not None
    names = [
        dict(part[0] for part in row["subject"])["commonName"] for row in context.get_ca_certs()
    ]
    assert sorted(names) == ["Corp CA", "Pin CA"]


async def test_the_mesh(place: Place) -> None:
    """What the server answers is no mesh host's; it was reached."""
    connection = HostConnection(
        f"https://{HOST}", "a-token", timeout=10, outgoing=Outgoing.read(place.paths)
    )
    with pytest.raises((HostRefused, HostUnreachable)):
        await connection.deregister("one", "a-token")
    await connection.close()
    assert place.proxy.seen[0].line == f"CONNECT {HOST}:443 HTTP/1.1"


async def test_traces(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter sends in the background."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    spans = make_spans(f"https://{HOST}", "box", Outgoing.read(place.paths))
    with spans.span("call", {}):
        pass
    await wait_until(lambda: bool(place.proxy.seen), "the exporter sends")
    assert place.proxy.seen[0].line.startswith(f"CONNECT {HOST}:443")
    assert place.proxy.seen[0].account == ACCOUNT


def test_telegram(place: Place) -> None:
    """The server has no such method, and is asked again later; it was reached, over TLS."""
    sender = ChatSender("token", "chat", api=f"https://{HOST}", outgoing=Outgoing.read(place.paths))
    assert sender._attempt("hello") == 0.0
    sender.close()
    assert place.proxy.seen[0].account == ACCOUNT


@pytest.mark.parametrize(
    ("url", "is_direct"),
    [
        ("https://127.0.0.1:8443", True),
        ("http://localhost/x", True),
        ("https://git.corp.example", True),
        ("https://corp.example", False),
        ("https://GIT.corp.example.:8443", True),
        ("https://10.1.2.3", True),
        ("https://[fd00::1]:8443", True),
        ("https://xcorp.example", False),
        ("wss://other.example", False),
    ],
)
def test_what_is_reached_directly(url: str, is_direct: bool) -> None:
    """Loopback, and what `no_proxy` names at any port."""
    outgoing = Outgoing(
        proxy="http://p.example:3128", no_proxy=("*.corp.example", "10.0.0.0/8", "[fd00::]/16")
    )
    assert outgoing.proxy_for(url) == ("" if is_direct else "http://p.example:3128")


def test_user_and_password_are_written_as_in_a_url() -> None:
    """Whatever signs they have."""
    outgoing = Outgoing(proxy="http://p.example:3128", account="jane:p@ss/wo:rd")
    assert outgoing.proxy_url == "http://jane:p%40ss%2Fwo%3Ard@p.example:3128"


def test_a_box_without_the_table_reaches_others_directly(tmp_path: Path) -> None:
    """And trusts what it trusted before."""
    assert Outgoing.read(Paths(tmp_path)) == Outgoing()
    assert Outgoing().tls() is None


@pytest.mark.parametrize(
    ("account", "why"), [(None, "it is not set"), ("jane", "it is not user:password")]
)
def test_a_proxy_without_its_user_stops_the_boot(
    place: Place, account: str | None, why: str
) -> None:
    """The value is not printed."""
    secret = place.paths.mounted_secrets / "PROXY_ACCOUNT"
    secret.unlink()
    if account is not None:
        secret.write_text(account)
    with pytest.raises(AgentboxError) as raised:
        write_outgoing(place.paths, network("http://p.example"))
    assert raised.value.message == (
        f"cannot use the proxy: PROXY_ACCOUNT (network.proxy_env): {why}"
    )


def test_only_certificates_are_taken_from_the_file(place: Place, tmp_path: Path) -> None:
    """A key beside them stays in the mount, which agents cannot read."""
    key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    place.paths.mounted_authorities.write_text(key + place.authority.root.read_text() + key)
    write_outgoing(place.paths, network(""))
    for file in (place.paths.all_authorities, place.paths.own_authorities):
        assert "PRIVATE" not in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o444
    assert place.paths.own_authorities.read_text() == place.authority.root.read_text()
    written = json.loads(place.paths.outgoing.read_text())
    assert (written["proxy"], written["account"]) == ("", "")
    assert set(written) == set(asdict(Outgoing()))
