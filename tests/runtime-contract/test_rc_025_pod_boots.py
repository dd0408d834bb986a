"""RC-025, run for real: the rendered pod template boots as a Pod under `podman kube play` until
`/ready` answers 200, in strict mode too: what Kubernetes cannot express is named as absent, and is
no drift. Any other difference is. What podman 4.3 forces to be masked is in harness/pod.py, one
line each."""

from pathlib import Path
from typing import Any

import pytest
from harness.images import Images
from harness.outcomes import MANIFEST
from harness.plans import plan_of
from harness.pod import SECRETS, Pod

from agentbox.box.supervision.missing_protections import KUBERNETES_LACKS


def widen(spec: dict[str, Any]) -> None:
    """More memory, and a larger /tmp, than in the plan."""
    resources = spec["containers"][0]["resources"]
    for bound in (resources["limits"], resources["requests"]):
        bound["memory"] = "3072Mi"
    (tmp,) = (volume for volume in spec["volumes"] if volume["name"] == "memory-tmp")
    tmp["emptyDir"]["sizeLimit"] = "512Mi"


def test_the_pod_boots_and_is_confined(images: Images, tmp_path: Path) -> None:
    """In strict mode. The Secret's token opens the API; uid, capabilities, seccomp list and memory are those of the plan."""
    plan = plan_of(MANIFEST)
    with Pod(tmp_path, plan, MANIFEST, images.plain, strict=True).running() as pod:
        ready = pod.wait_ready(60)
        assert ready["ready"] is True
        assert ready["plan_digest"] == plan.digest
        assert pod.events("ApiTokenResolved")[-1]["source"] == "secret"
        token = pod.run("/usr/bin/cat", "/run/secrets/AGENTBOX_API_TOKEN").out
        assert token in SECRETS
        assert pod.get("/v1/events?limit=1", f"Authorization: Bearer {token}") is not None
        assert pod.get("/v1/events?limit=1", "Authorization: Bearer another") is None
        status = dict(
            line.split(":\t", 1)
            for line in pod.run("/usr/bin/cat", "/proc/1/status").out.splitlines()
        )
        assert status["Uid"].split() == ["1000"] * 4
        assert {
            int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
        } == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        checked = pod.events("PostureChecked")[-1]["expected"]
        assert {"seccomp_fingerprint", "limit.memory", "root", "mount:/tmp"} <= set(checked)
        assert pod.events("PostureDrift") == []
        health = pod.get("/health")
        assert health["posture"]["drift"] == []
        assert health["protections_absent"] == list(KUBERNETES_LACKS)


@pytest.mark.sampled(2, family="pods with drift")
def test_real_drift_is_told_in_a_pod(images: Images, tmp_path: Path) -> None:
    """A pod with more than the plan grants: each control by name, and nothing else."""
    plan = plan_of(MANIFEST)
    with Pod(tmp_path, plan, MANIFEST, images.plain, change=widen).running() as pod:
        pod.wait_ready(60)
        told = {event["control"]: event["found"] for event in pod.events("PostureDrift")}
        assert told == {"limit.memory": str(3 << 30), "mount:/tmp": f"tmpfs {512 << 10} KiB"}
        assert [row.partition(":")[0] for row in pod.get("/health")["posture"]["drift"]] == [
            "limit.memory",
            "mount",
        ]


@pytest.mark.sampled(2, family="pods with drift")
def test_strict_mode_refuses_real_drift_in_a_pod(images: Images, tmp_path: Path) -> None:
    """The boot fails and names the control."""
    plan = plan_of(MANIFEST)
    with Pod(tmp_path, plan, MANIFEST, images.plain, strict=True, change=widen).running() as pod:
        pod.wait_for_event("BootstrapFailed", 60)
        assert "limit.memory" in pod.events("BootstrapFailed")[0]["reason"]
