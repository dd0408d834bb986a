"""RC-003: no package manager or downloader is called before the seal, and no source of ours calls one."""

import re
from collections.abc import Callable
from pathlib import Path

from harness.container import DockerBox

from agentbox.settings import CHECKOUT

RECORDED = ("apt", "apt-get", "dpkg", "pip", "pip3", "npm", "curl", "git")
CALL = re.compile(r"""["'](?:/usr/bin/)?(?:apt|apt-get|dpkg|pip3?|npm|wget)["'],""")
IN_THE_BOX = ("boot", "api", "agents", "adapters", "probes", "sandbox", "supervision", "privacy")


def recorder(folder: Path) -> list[str]:
    """Mounts of a script that notes that it was called; for programs whose place exists in the image."""
    script = folder / "recorder"
    script.write_text('#!/bin/sh\necho "$0 $*" >> /tmp/called\nexit 97\n')
    script.chmod(0o755)
    return [f"./recorder:/usr/bin/{name}:ro" for name in ("curl", "git")]


def test_rc_003_nothing_is_called(docker_box: Callable[..., DockerBox]) -> None:
    """With recorders over curl and git the box seals without calling either; deep probes come after the seal."""
    box = docker_box()
    box.render()
    mounts = recorder(box.folder)
    box.options.override.update({"volumes": mounts, "healthcheck": {"disable": True}})
    box.start()
    box.wait_ready()
    called = box.run(["cat", "/tmp/called"])
    before_seal = [line for line in called.out.splitlines() if "--version" not in line]
    assert before_seal == []
    control = box.run(["/usr/bin/git", "status"])
    assert control.code == 97
    assert "/usr/bin/git status" in box.run(["cat", "/tmp/called"]).out


def test_rc_003_image_has_no_installer(docker_box: Callable[..., DockerBox]) -> None:
    """apt, dpkg and npm are not in the image at all; python is, as the positive control."""
    box = docker_box()
    box.start()
    box.wait_ready()
    found = box.run(["bash", "-c", f"for n in {' '.join(RECORDED)} python3; do command -v $n; done; :"])
    names = {Path(line).name for line in found.out.split()}
    assert "python3" in names
    assert names <= {"python3", "curl", "git"}


def test_rc_003_no_source_calls_one() -> None:
    """No file that runs in the box holds a call of an installer; the scan finds one where there is one."""
    scanned = [path for part in IN_THE_BOX for path in (CHECKOUT / "agentbox" / part).rglob("*.py")]
    assert len(scanned) > 40
    assert CALL.search('run(["apt-get", "install"])')
    assert [str(path) for path in scanned if CALL.search(path.read_text())] == []
