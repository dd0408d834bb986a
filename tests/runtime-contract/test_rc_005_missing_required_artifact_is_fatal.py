"""RC-005: a required artifact that is missing ends the boot non-zero within 10 s, and both events name it.

Columns D and H (H: by the test hook).
"""

from collections.abc import Callable

from harness.box import Box
from harness.container import DockerBox

PROBE = "core-git"
SECONDS = 10


def ends_naming(box: Box, probe: str) -> None:
    """The predicate: the box ends in time, phase 5 names the probe in both events, nothing is sealed."""
    box.start()
    assert box.wait_exit(SECONDS) != 0
    assert box.event("MissingArtifactDetected")["capability"] == probe
    failed = box.event("BootstrapFailed")
    assert failed["phase"] == "5"
    assert probe in failed["reason"]
    assert failed["fix"]
    assert not box.sealed()


def emptied() -> dict[str, object]:
    """Options of a box whose git is an empty file."""
    return {"files": {"/usr/bin/git": b""}}


def test_rc_005_artifact_emptied(docker_box: Callable[..., DockerBox]) -> None:
    """An empty file over /usr/bin/git."""
    ends_naming(docker_box(**emptied()), PROBE)


def test_rc_005_hook(make_box: Callable[..., Box]) -> None:
    """A probe forced missing by the test hook."""
    box = make_box(hooks={"AGENTBOX_TEST_FORCE_MISSING": PROBE})
    assert any(
        probe.id == PROBE and probe.required and probe.stage == "boot" for probe in box.plan.probes
    )
    ends_naming(box, PROBE)
