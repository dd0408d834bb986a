"""RC-024: label, compose, sentinel, `/v1/meta` and metrics agree on manifest, plan, lock and closure."""

import json
import re
from collections.abc import Callable

from harness.box import METRICS_PORT
from harness.container import DockerBox, docker


def test_rc_024(docker_box: Callable[..., DockerBox]) -> None:
    """Five places, one value each."""
    box = docker_box()
    box.start()
    box.wait_ready()
    image = json.loads(docker("image", "inspect", box.image.image_id))[0]["Config"]
    labels, container = image["Labels"], box.inspect()["Config"]["Labels"]
    sentinel = json.loads(box.run(["cat", "/run/agentbox/bootstrap.done"]).out)["digests"]
    meta = box.get("/v1/meta").json
    metrics = box.get("/metrics", port=METRICS_PORT).body.decode()
    for name in ("plan", "manifest", "lock"):
        values = {
            labels[f"org.agentbox.{name}-digest"], container[f"org.agentbox.{name}-digest"],
            sentinel[name], meta[f"{name}_digest"],
        }  # fmt: skip
        assert len(values) == 1, (name, values)
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", values.pop())
    closure = {labels["org.agentbox.closure-digest"], sentinel["closure"], meta["image"]["closure_digest"]}
    assert len(closure) == 1, closure
    assert f'plan_digest="{box.plan.digest}"' in metrics
    assert f"from plan {box.plan.digest}" in (box.folder / "docker-compose.yml").read_text()
    assert json.loads(docker("image", "inspect", box.image.image_id))[0]["Config"]["User"] == "1000:1000"
