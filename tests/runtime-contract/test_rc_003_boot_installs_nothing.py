"""RC-003: no package manager or downloader is called before the seal, and no source of ours calls one.

Column D. Programs that stand in for the real ones write down that they were called, and whether the boot was sealed.
"""

import re
from collections.abc import Callable
from pathlib import Path

from harness.box import SENTINEL
from harness.container import DockerBox

from agentbox.core.paths import CHECKOUT

RECORDED = ("apt", "apt-get", "dpkg", "pip", "pip3", "npm", "curl", "wget", "git")
IN_THE_IMAGE = ("curl", "git")
CALL = re.compile(
    r"""["'](?:/usr/bin/)?(?:apt|apt-get|dpkg|pip3?|npm|wget)["'],|["']-m["'], ["']pip["']"""
)
IN_THE_BOX = ("box", "api", "agents", "adapters", "core", "sandbox", "policy")
BEFORE, AFTER = "/tmp/called-before-seal", "/tmp/called-after-seal"
RECORDER = f"""#!/usr/bin/sh
if [ -e {SENTINEL} ]; then file={AFTER}; else file={BEFORE}; fi
echo "$0 $*" >> $file
exit 97
"""


def recorders() -> dict[str, object]:
    """Options of a box whose installers and downloaders are recorders."""
    files = {f"/usr/bin/{name}": RECORDER.encode() for name in IN_THE_IMAGE}
    return {"files": files, "service": {"healthcheck": {"interval": "1h"}}}


def installs_nothing(box: DockerBox) -> None:
    """The predicate: the box seals without having called a recorder, and the recorders do record."""
    box.start()
    box.wait_event("BootstrapCompleted", 20)
    calls = box.run(["cat", BEFORE])
    assert calls.out == "", f"called before the seal: {calls.out}"
    control = box.run(["/usr/bin/git", "status"])
    assert control.code == 97
    assert "/usr/bin/git status" in box.text(AFTER)


def test_rc_003_nothing_is_called(docker_box: Callable[..., DockerBox]) -> None:
    """The boot calls none of the programs that could install or download something."""
    installs_nothing(docker_box(**recorders()))


def test_rc_003_image_has_no_other_installer(running_docker: DockerBox) -> None:
    """Of these names the image has only those that recorders were mounted over, and no pip as a
    module."""
    box = running_docker
    found = box.run(
        ["bash", "-c", f"for n in {' '.join(RECORDED)} python3; do command -v $n; done; :"]
    )
    assert {Path(line).name for line in found.out.split()} == {"python3", *IN_THE_IMAGE}
    assert box.python("import uvicorn").code == 0
    assert "No module named" in box.python("import pip").err


def test_rc_003_no_source_calls_one() -> None:
    """No file that runs in the box contains a call of an installer; the scan finds one where there
    is one."""
    scanned = [path for part in IN_THE_BOX for path in (CHECKOUT / "agentbox" / part).rglob("*.py")]
    assert len(scanned) > 40
    assert CALL.search('run(["apt-get", "install"])')
    assert [str(path) for path in scanned if CALL.search(path.read_text())] == []
