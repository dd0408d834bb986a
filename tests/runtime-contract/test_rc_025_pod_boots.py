"""RC-025, run for real: the rendered pod template boots as a Pod under `podman kube play` until `/ready` answers 200, and
its own posture check names nothing but what Kubernetes has no words for.

What podman 4.3 forces to be masked is in harness/pod.py, one line each.
"""

from pathlib import Path

from harness.box import MANIFEST
from harness.images import Images
from harness.plans import plan_of
from harness.pod import IGNORED, SECRETS, Pod


def test_the_pod_boots_and_is_confined(images: Images, tmp_path: Path) -> None:
    """The Secret's token opens the API; uid, capabilities, seccomp list and memory are those of the plan."""
    plan = plan_of(MANIFEST)
    with Pod(tmp_path, plan, MANIFEST, images.plain).running() as pod:
        ready = pod.wait_ready(60)
        assert ready["ready"] is True
        assert ready["plan_digest"] == plan.digest
        assert pod.events("ApiTokenResolved")[-1]["source"] == "secret"
        token = pod.run("/usr/bin/cat", "/run/secrets/AGENTBOX_API_TOKEN").out
        assert token in SECRETS
        assert pod.get("/v1/events?limit=1", f"Authorization: Bearer {token}") is not None
        assert pod.get("/v1/events?limit=1", "Authorization: Bearer another") is None
        status = dict(line.split(":\t", 1) for line in pod.run("/usr/bin/cat", "/proc/1/status").out.splitlines())
        assert status["Uid"].split() == ["1000"] * 4
        assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
        assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
        checked = pod.events("PostureChecked")[-1]["expected"]
        drifted = {event["control"] for event in pod.events("PostureDrift")}
        assert {"seccomp_fingerprint", "limit.memory", "root"} <= set(checked)
        assert drifted == set(IGNORED)
