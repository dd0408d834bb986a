"""What a rehearsal makes on this host and must remove."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cli_box import CliBox

from agentbox.core.paths import PREFIX_VARIABLE
from agentbox.host.uninstall.inventory import Inventory


def traces(box: CliBox) -> list[str]:
    """Containers, volumes, networks, folders, processes, and lines of the inventory."""
    name = f"{box.name}_rehearsal"
    listed = [
        subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout
        for words in (
            ("ps", "--all", "--format", "{{.Names}}"),
            ("volume", "ls", "--quiet"),
            ("network", "ls", "--format", "{{.Name}}"),
        )
    ]
    found = [line for text in listed for line in text.splitlines() if name in line]
    places = (box.state.with_name(name), Path("/var/lib/agentbox-process") / name)
    found += [str(path) for path in places if path.exists()]
    found += [str(item) for item in Inventory(box.state.parent).items() if name in item.name]
    return found + [str(pid) for pid in processes(box)]


def processes(box: CliBox) -> list[int]:
    """The processes of its box."""
    marker = f"{PREFIX_VARIABLE}=/var/lib/agentbox-process/{box.name}_rehearsal".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it has ended
            continue
    return found
