"""A layer's specification becomes its tree."""

import subprocess
import sys
from pathlib import Path

from agentbox.host.image.tree.__main__ import build


def test_links_wrappers_and_folders(tmp_path: Path) -> None:
    """Each is at the requested path, below usr; a wrapper passes all its arguments to the program,
    spaces included."""
    wanted = {
        "layer": "f-x",
        "arch": "amd64",
        "python": "3.13",
        "interpreter": [sys.executable],
        "links": [["/bin/short", "long"]],
        "wrappers": [["/usr/bin/say", "/usr/bin/printf"]],
        "folders": ["/var/lib/agentbox/x"],
    }
    found = {entry.path: entry for entry in build(wanted, tmp_path / "tree").entries}
    assert found["usr/bin/short"].target == "long"
    assert (found["usr/bin/say"].mode, found["usr/bin/say"].owner) == (0o755, "generated:links")
    assert found["var/lib/agentbox/x"].type == "dir"
    said = subprocess.run(
        ["sh", tmp_path / "tree/usr/bin/say", "%s-", "a b", "c"], capture_output=True, check=True
    )
    assert said.stdout == b"a b-c-"
