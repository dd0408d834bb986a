"""Fifty boxes at one host: a silent one is evicted and no other, heartbeats stay quick, nothing
stays open."""

import time
from pathlib import Path
from statistics import quantiles

import httpx
import pytest
from meshes import SCALE, Start, told
from support.mesh import ENROLMENT, ManualBox, host_plan

from agentbox.client import BoxClient
from agentbox.client.transport import base_headers, build_call

BOXES, SILENT = 50, 10
SECONDS = 30 / SCALE  # between two heartbeats of a box
PERIODS = 10  # three leases
P95 = 0.02  # seconds of a heartbeat, in the period in which this machine was least busy with other tests


@pytest.mark.timed
def test_only_who_falls_silent_is_evicted(start: Start) -> None:
    """Fifty join, ten stop: exactly those are expired. The descriptors of the host are no more than before."""
    host = start(host_plan())
    assert host.process is not None
    boxes = [ManualBox(host) for _ in range(BOXES)]
    silent, living = boxes[:SILENT], boxes[SILENT:]
    quickest, before = 1.0, 0
    with host.client("") as client:
        for box in boxes:
            _register(client, box)
        for number in range(1, PERIODS + 1):
            began = time.monotonic()
            spent = [_beat(client, box, number) for box in living]
            quickest = min(quickest, quantiles(spent, n=20)[18])
            before = before or _descriptors(host.process.pid)
            while time.monotonic() < began + SECONDS:
                time.sleep(0.01)
        assert _descriptors(host.process.pid) <= before + 2
    evicted = {row["instance"] for row in told(host, "mesh.session.evicted", reason="expired")}
    assert evicted == {box.instance_id for box in silent}
    with host.client() as operator:
        active = operator.call("mesh_sessions", query={"state": "active", "limit": 500})["items"]
    assert {row["instance_id"] for row in active} == {box.instance_id for box in living}
    text = httpx.get(f"{host.metrics_url}/metrics", trust_env=False).text
    assert f'agentbox_mesh_sessions{{state="active"}} {len(living):.1f}' in text
    assert f'agentbox_mesh_evictions_total{{reason="expired"}} {SILENT:.1f}' in text
    assert quickest < P95


def _register(client: BoxClient, box: ManualBox) -> None:
    call = build_call("mesh_register", body=box.register_body(), headers=base_headers(ENROLMENT))
    result = client.send(call).json()
    box.token, box.session_id = result["token"], result["session_id"]


def _beat(client: BoxClient, box: ManualBox, number: int) -> float:
    """How long it took."""
    body = {"session_id": box.session_id, "beat": number}
    began = time.perf_counter()
    client.send(build_call("mesh_heartbeat", body=body, headers=base_headers(box.token)))
    return time.perf_counter() - began


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
