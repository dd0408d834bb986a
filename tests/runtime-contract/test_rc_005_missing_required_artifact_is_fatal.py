"""RC-005: a required artifact that is missing ends the boot non-zero within 10 s, and both events name it."""

from collections.abc import Callable

from harness.box import Box
from harness.container import DockerBox

PROBE = "git"


def test_rc_005_artifact_emptied(docker_box: Callable[..., DockerBox], tmp_path: object) -> None:
    """An empty file mounted over /usr/bin/git ends the boot; MissingArtifactDetected and BootstrapFailed name it."""
    box = docker_box(override={"volumes": ["./empty:/usr/bin/git:ro"]})
    box.render()
    (box.folder / "empty").write_text("")
    box.start()
    assert box.wait_exit(10) != 0
    assert PROBE in str(box.event("MissingArtifactDetected"))
    assert PROBE in str(box.event("BootstrapFailed"))


def test_rc_005_hook(make_box: Callable[..., Box]) -> None:
    """With the probe forced missing by the test hook the same happens under every engine."""
    control = make_box(test_hooks=True)
    probe = next(p for p in control.plan.probes if p.required and p.stage == "boot")
    box = make_box(hooks={"AGENTBOX_TEST_FORCE_MISSING": probe.id})
    box.start()
    assert box.wait_exit(10) != 0
    assert probe.id in str(box.event("MissingArtifactDetected"))
    assert probe.id in str(box.event("BootstrapFailed"))
    assert not any(event["event"] == "BootstrapCompleted" for event in box.events())
