"""RC-024: image label, compose, sentinel, `/v1/meta` and metrics agree on manifest, plan, lock and closure.

Column D.
"""

import json
import re

from harness.container import DockerBox, docker
from harness.outcomes import METRICS_PORT


def test_rc_024(running_docker: DockerBox) -> None:
    """One value each in every place that has it."""
    box = running_docker
    image = json.loads(docker("image", "inspect", box.image.image_id))[0]["Config"]
    labels, container = image["Labels"], box.inspect()["Config"]["Labels"]
    sentinel, meta = box.sentinel()["digests"], box.get("/v1/meta").json
    for name in ("plan", "manifest", "lock"):
        places = (labels, container)
        values = {place[f"org.agentbox.{name}-digest"] for place in places} | {
            sentinel[name],
            meta[f"{name}_digest"],
        }
        assert len(values) == 1, (name, values)
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", values.pop())
    assert (
        container["org.agentbox.image-ref"]
        == box.inspect()["Image"]
        == sentinel["image"]
        == meta["image"]["digest"]
    )
    closure = {
        labels["org.agentbox.closure-digest"], box.image.closure_digest, sentinel["closure"], meta["image"]["closure_digest"],
        f"sha256:{_closure(box)}",
    }  # fmt: skip
    assert len(closure) == 1, closure
    metrics = box.get("/metrics", port=METRICS_PORT).body.decode()
    info = next(line for line in metrics.splitlines() if line.startswith("agentbox_build_info{"))
    assert f'plan_digest="{box.plan.digest}"' in info
    compose = (box.compose_folder / "docker-compose.yml").read_text()
    assert f"from plan {box.plan.digest}" in compose
    assert f"@{box.image.manifest_digest}" in compose


def _closure(box: DockerBox) -> str:
    """From the container's own environment, where the image put it."""
    named = next(
        word
        for word in box.inspect()["Config"]["Env"]
        if word.startswith("AGENTBOX_CLOSURE_DIGEST=")
    )
    return named.partition("=")[2].removeprefix("sha256:")
