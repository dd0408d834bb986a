"""The three programs as a box has them: a confined agent reaches the gateway, and through it what it was granted."""

import http.server
import shutil
import threading
from base64 import b64decode
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from agentbox_testkit.wait import wait_until
from support import plans
from support.api_box import ApiBox
from support.gateway_box import GatewayBox
from support.ports import free_port

from agentbox.client import AgentApiClient, AgentApiDenied, BoxClient

CURL = f"{shutil.which('curl')} -sS -m 5"
HELLO = f"""{CURL} -H "Authorization: Bearer $AGENTBOX_TOKEN" -d '{{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}}' $AGENTBOX_URL/rpc"""


def manifest(port: int, other: int) -> str:
    loops = f"while :; do if {HELLO % ('hello', '{}')} >/dev/null 2>&1; then echo yes; else echo no; fi; sleep 0.1; done"
    once = "\n".join((
        HELLO % ("hello", "{}"), HELLO % ("memory.store", '{"key":"k","value":7}'), HELLO % ("agent.list", "{}"),
        f"{CURL} --noproxy '' http://127.0.0.1:{port}/x", f"{CURL} --noproxy '' -o /dev/null -w '%{{http_code}}\\n' http://127.0.0.1:{other}/x",
        f"{CURL} --noproxy '*' http://127.0.0.1:{port}/x && echo out || echo direct refused",
    ))  # fmt: skip
    return f"""
[egress]
allow = ["127.0.0.1:{port}"]
allow_private = ["127.0.0.1:{port}", "127.0.0.1:{other}"]
[agents.once]
command = ["sh", "-c", '''{once}''']
profile = "standard"
children = ["loops"]
workspace = "direct"
[agents.parent]
command = ["sh", "-c", 'echo "$AGENTBOX_TOKEN"; exec sleep 1000']
profile = "standard"
children = ["talker"]
workspace = "direct"
[agents.talker]
command = ["sh", "-c", 'echo ready; while read -r line; do echo "heard $line"; done']
profile = "sandboxed"
protocol = "stdio"
workspace = "direct"
[agents.loops]
command = ["sh", "-c", '''{loops}''']
profile = "standard"
workspace = "direct"
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server on loopback that has the file x."""
    directory = tmp_path_factory.mktemp("files")
    (directory / "x").write_text("content\n")
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(directory))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def box(
    tmp_path_factory: pytest.TempPathFactory, files: int
) -> Iterator[tuple[ApiBox, GatewayBox]]:
    result = plans.plan_of(manifest(files, free_port()))
    tables: dict[str, Any] = {
        "agents": result.agents,
        "policies": result.policies,
        "reach": result.reach,
        "limits": result.limits,
    }
    prefix = tmp_path_factory.mktemp("box")
    api = ApiBox(prefix, **tables)
    api.paths.token("gateway").write_text("a-token-of-this-boot")
    with api, GatewayBox(prefix, api.plan) as gateway:
        yield api, gateway


def said(client: BoxClient, agent_id: str) -> list[str]:
    """Lines of its stdout so far."""
    items = client.agents.stream(agent_id, follow=False)
    return b"".join(item.data for item in items if item.kind == "stdout").decode().splitlines()


async def test_an_agent_at_the_agent_api_and_through_the_proxy(
    box: tuple[ApiBox, GatewayBox],
) -> None:
    """Its identity, memory of its own, its children; the granted server by the proxy, the other
    not, and nothing past it."""
    api, _ = box
    with api.client() as client:
        agent = client.call("spawn", body={"name": "once", "agent": "once"})
        agent_id = agent["handle"]["agent_id"]
        await wait_until(
            lambda: client.agents.get(agent_id).exit is not None, "it has ended", seconds=30
        )
        lines = said(client, agent_id)
        assert f'"id":"{agent_id}"' in lines[0], lines
        assert '"value":7' in "".join(lines).replace(" ", "")
        assert any(line[-7:] == "content" for line in lines), lines
        assert any(line.endswith("403") for line in lines), lines
        assert lines[-1] == "direct refused"
        own = f"state.{client.agents.get(agent_id).state_id}"
        assert client.memory.retrieve("k", namespace=own) is not None
        await wait_until(
            lambda: client.agents.get(agent_id).denials.get("proxy") == {"net connect": 1},
            "the refusal is counted",
            seconds=10,
        )


async def test_calls_of_agents_leave_no_line_in_the_logs(box: tuple[ApiBox, GatewayBox]) -> None:
    """However many: the log of a box is no agent's to fill."""
    api, gateway = box
    with api.client() as client:
        parent = client.call("spawn", body={"name": "parent", "agent": "parent"})["handle"]
        await wait_until(
            lambda: bool(said(client, parent["agent_id"])), "it says its token", seconds=20
        )
        logs = (gateway.log, api.log)
        with AgentApiClient(
            f"http://127.0.0.1:{gateway.port}", said(client, parent["agent_id"])[0]
        ) as agent_api:
            agent_api.call("memory.list")
            before = [log.stat().st_size for log in logs]
            for number in range(20):
                agent_api.call("memory.store", key=f"k{number}", value=number)
                with pytest.raises(AgentApiDenied):
                    agent_api.call("bead.show", id="01900000-0000-7000-8000-000000000000")
            assert [log.stat().st_size for log in logs] == before
        client.agents.terminate(parent["agent_id"], parent["generation"], grace_s=0)


async def test_an_agent_lives_through_the_death_of_the_gateway(
    box: tuple[ApiBox, GatewayBox],
) -> None:
    """SIGKILL: its calls fail for a while and then succeed, by the same token, in the same process."""
    api, gateway = box
    with api.client() as client:
        agent_id = client.call("spawn", body={"name": "loops", "agent": "loops"})["handle"][
            "agent_id"
        ]
        await wait_until(lambda: "yes" in said(client, agent_id), "it is answered", seconds=20)
        before = client.agents.get(agent_id)
        gateway.kill()
        await wait_until(lambda: "no" in said(client, agent_id), "nobody answers", seconds=20)
        gateway.start()
        await wait_until(
            lambda: said(client, agent_id)[-1] == "yes", "it is answered again", seconds=20
        )
        after = client.agents.get(agent_id)
        assert (after.pid, after.generation, after.state) == (
            before.pid,
            before.generation,
            "running",
        )
        client.agents.terminate(agent_id, before.generation)


async def test_an_agent_starts_another_and_talks_to_it(box: tuple[ApiBox, GatewayBox]) -> None:
    """Spawn by name, send, recv, status, terminate; another's child, a name without a grant, and a
    second parent are refused."""
    api, gateway = box
    url = f"http://127.0.0.1:{gateway.port}"
    with api.client() as client:
        parent = client.call("spawn", body={"name": "parent", "agent": "parent"})["handle"]
        await wait_until(
            lambda: bool(said(client, parent["agent_id"])), "it says its token", seconds=20
        )
        unauthenticated = client.call("spawn", body={"name": "loops", "agent": "loops"})["handle"]
        with AgentApiClient(url, said(client, parent["agent_id"])[0]) as agent_api:
            child = agent_api.call("agent.spawn", name="talker", labels={"for": "a test"})
            child_id = child["handle"]["agent_id"]
            assert child["spec"]["parent_id"] == parent["agent_id"]
            received: list[str] = []

            def hears(text: str) -> bool:
                received[:] = [
                    b64decode(item["data"]).decode()
                    for item in agent_api.call("agent.recv", id=child_id)["items"]
                    if item["kind"] == "stdout"
                ]
                return text in "".join(received)

            await wait_until(lambda: hears("ready"), "it is ready", seconds=20)
            assert agent_api.call("agent.send", id=child_id, text="hello\n") == {"sent": 6}
            await wait_until(lambda: hears("heard hello"), "it heard", seconds=20)
            assert [one["handle"]["agent_id"] for one in agent_api.call("agent.list")["items"]] == [
                child_id
            ]
            assert agent_api.call("agent.status", id=child_id)["state"] == "running"
            assert agent_api.call("agent.status", id=parent["agent_id"])["spec"]["name"] == "parent"
            for method, params in (
                ("agent.status", {"id": unauthenticated["agent_id"]}), ("agent.terminate", {"id": unauthenticated["agent_id"]}),
                ("agent.recv", {"id": unauthenticated["agent_id"]}), ("agent.send", {"id": unauthenticated["agent_id"], "text": "x"}),
                ("agent.spawn", {"name": "loops"}),
            ):  # fmt: skip
                with pytest.raises(AgentApiDenied) as caught:
                    agent_api.call(method, **params)
                assert caught.value.code == "permission-denied", method
            for odd in (
                {"name": "talker", "argv": ["id"]},
                {"name": "talker", "parent_id": unauthenticated["agent_id"]},
            ):
                with pytest.raises(AgentApiDenied) as caught:
                    agent_api.call("agent.spawn", **odd)
                assert caught.value.code == "validation"
            assert agent_api.call("agent.terminate", id=child_id, grace_s=0)["reason"] is not None
            assert agent_api.call("agent.status", id=child_id)["state"] != "running"
        for one in (parent, unauthenticated):
            client.agents.terminate(one["agent_id"], one["generation"], grace_s=0)
