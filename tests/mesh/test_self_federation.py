"""Self-federation: every slot of box B is external, and box A with local classes is its peer. A
program that uses B cannot notice it. The contract suites of the slots run in `tests/contract`; here
it is one box."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import sh, until
from meshes import Start, told
from postgres_server import running
from support.api_box import SLOTS, TOKEN, ApiBox
from support.mesh import client_plan, host_plan

from agentbox.client import BoxClient
from agentbox.core.paths import CHECKOUT
from agentbox.plan.model import SlotPlan

PAGE = (CHECKOUT / "docs/howto/federate.md").read_text()
AGENTS, DSN = "AGENTBOX_AGENTS_TOKEN", "AGENTBOX_MEMORY_DSN"
MEMORY = SlotPlan(
    use="external-pg", required=False,
    options={"dsn_env": DSN, "schema": "agentbox_memory", "pool_size": 4, "timeout_seconds": 10, "embedder": "static-256"},
)  # fmt: skip


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """A database that both boxes use."""
    with running() as server:
        yield server.dsn("postgres")


def shown(box: ApiBox) -> list[str]:
    """The output of the page's program there."""
    program = PAGE.split("```python\n")[1].split("```")[0]
    words = [sys.executable, "-c", program, box.url, TOKEN]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def slots(client: BoxClient) -> dict[str, str]:
    return {slot: row.state for slot, row in client.health().adapters.items()}


def federated(host: ApiBox) -> Any:
    """The plan of B."""
    command = (
        sys.executable,
        "-I",
        "-m",
        "agentbox.agents.bridge",
        "--url",
        host.url,
        "--token-env",
        AGENTS,
    )
    given_options = {"endpoint": "", "timeout_seconds": 5}
    return client_plan(
        host.url,
        slots={
            "pods": SlotPlan(use="external-solid", required=False, options=given_options),
            "events": SlotPlan(
                use="external-http",
                required=False,
                options={**given_options, "fsync": "group", "tee_local": True},
            ),
            "orchestrator": SlotPlan(
                use="external-stdio", required=False, options={"command": command, "env": (AGENTS,)}
            ),
            "memory": MEMORY,
        },
    )


@pytest.mark.timed  # the child of a slot opens within 10 s, at low priority
def test_every_slot_of_a_box_is_anothers(start: Start, database: str) -> None:
    """The page's program prints the same as on a single box; agents, memory and events are the
    other box's, too; also after a death of the host."""
    alone = start(host_plan(mode="standalone"))
    expected = PAGE.split("```text\n")[1].split("```")[0].splitlines()
    assert shown(alone) == expected
    host = start(
        host_plan(slots={"memory": MEMORY, "orchestrator": SLOTS["orchestrator"]}),
        secrets={DSN: database},
    )
    with host.client() as there:
        made = there.call(
            "create_token", body={"name": "b", "scopes": ["agents:read", "agents:write"]}
        )
    box = start(federated(host), wait=False, secrets={AGENTS: made["value"], DSN: database})
    with host.client() as there, box.client() as here:
        until(lambda: set(slots(here).values()) == {"ok"}, 30)
        assert shown(box) == expected
        assert _task(here) == (b"from A\n", 7)
        here.memory.store("shared", {"by": "b"})
        assert there.memory.retrieve("shared").value == {"by": "b"}
        instance = here.call("mesh_status")["instance_id"]
        assert there.pods.read(f"boxes/{instance}/notes/release.txt") == b"three of three"
        kinds = until(
            lambda: (result := _delivered(there, instance)) >= {"release.done"} and result
        )
        assert "mesh.registered" in kinds
        host.kill()
        until(lambda: slots(here)["beads"] == "down", 20)
        host.start()
        until(lambda: set(slots(here).values()) == {"ok"}, 60)
        assert _task(here) == (b"from A\n", 7)
    assert told(host, "mesh.session.evicted") == []


def _task(client: BoxClient) -> tuple[bytes, int]:
    """Output and exit of a task."""
    task = client.submit_task(sh("echo from A; exit 7"))
    *output, done = client.task_logs(task.task_id)
    return b"".join(item.data for item in output if item.kind == "stdout"), done.exit["code"]


def _delivered(there: BoxClient, instance: str) -> set[str]:
    """Types of what B delivered."""
    result, since = set(), -1
    while page := there.call("read_events", query={"since": since, "limit": 1000})["events"]:
        result |= {
            event["type"] for event in page if (event.get("origin") or {}).get("box") == instance
        }
        since = page[-1]["seq"]
    return result
