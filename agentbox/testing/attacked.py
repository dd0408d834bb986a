"""`python -m agentbox.testing.attacked FOLDER [LINE...]`: a box of the prefix and the battery against it, as JSON.

A program of its own, so that a test that runs as root can have it run as an ordinary user, as every box does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentbox.attack.catalogue import BY_NAME, LINES
from agentbox.doctor.attacking import attack, facts_of
from agentbox.doctor.forms.plain import plain
from agentbox.engine.identity import BOX_UID
from agentbox.settings import CHECKOUT
from agentbox.testing.api_box import ApiBox

_SECONDS = 240


def attacked(names: Iterable[str] = ()) -> Mapping[str, Any]:
    """The scorecard of those lines, none = all, as `plain` has it: of a box that runs as no root."""
    with tempfile.TemporaryDirectory() as folder:
        argv, user = [sys.executable, "-m", "agentbox.testing.attacked", folder, *names], {}
        if os.geteuid() == 0:
            os.chown(folder, BOX_UID, BOX_UID)
            user = {"user": BOX_UID, "group": BOX_UID, "extra_groups": ()}
        done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, timeout=_SECONDS, check=False, **user)  # type: ignore[call-overload]
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


def main(words: list[str]) -> None:
    """Prints the scorecard."""
    folder, *names = words
    with ApiBox(Path(folder)) as box, box.client() as client:
        lines = [BY_NAME[name] for name in names] or LINES
        print(json.dumps(plain(attack(client, facts_of(box.plan, box.paths), lines))))


if __name__ == "__main__":
    main(sys.argv[1:])
