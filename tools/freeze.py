"""Writes `tests/golden/frozen.json`: everything that others read of agentbox. `--check` compares.

Run `python tools/freeze.py` when a change of what is listed there is meant, and state the reason
in CHANGELOG.md.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from frozen import names, sources, stores, surfaces
from frozen.records import Records, subclasses

TARGET: Final = Path(__file__).parents[1] / "tests/golden/frozen.json"
COMMAND: Final = "python tools/freeze.py"
Facts = Mapping[str, Mapping[str, str]]


def records() -> Records:
    """Those that leave a process."""
    return Records((*surfaces.http_places(), *sources.PLACES.items()), _kinds())


def facts() -> Facts:
    """Section -> name -> what is known of it, as the code has it now."""
    wire = records()
    return {
        "HTTP operations": surfaces.http(wire),
        "records": wire.facts(),
        "members written by hand": names.written(),
        "documents": names.documents(),
        "databases": stores.sqlite() | stores.postgres(),
        "agent-host RPC": surfaces.agent_rpc(),
        "agent API": surfaces.agent_api(),
        "slots": surfaces.slots(),
        "command line": surfaces.command_line(),
        "exit codes": names.exit_codes(),
        "problems": names.problems(),
        "events": names.event_types(),
        "boot": names.boot(),
        "metrics": names.metrics(),
        "environment": names.environment(),
        "manifest": names.manifest(),
        "rules": names.rules(),
        "sandbox": names.sandbox(),
        "files": names.files(),
    }


def text(found: Facts) -> str:
    """One fact a line, in order; a section of names alone is a list."""
    ordered = {
        section: dict(sorted(rows.items())) if any(rows.values()) else sorted(rows)
        for section, rows in found.items()
    }  # fmt: skip
    return json.dumps(ordered, indent=1, ensure_ascii=False) + "\n"


def read(path: Path = TARGET) -> Facts:
    """The inverse of `text`."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {
        section: rows if isinstance(rows, dict) else dict.fromkeys(rows, "")
        for section, rows in stored.items()
    }


def differences(old: Facts, new: Facts) -> Iterator[str]:
    """One line for each name that came, went or changed."""
    for section in sorted({*old, *new}):
        before, after = old.get(section, {}), new.get(section, {})
        for name in sorted({*before, *after}):
            if name not in after:
                yield f"removed from {section}: {name}"
            elif name not in before:
                yield f"added to {section}: {name} {after[name]}".rstrip()
            elif before[name] != after[name]:
                yield f"changed in {section}: {name}: {before[name]!r} -> {after[name]!r}"


def _kinds() -> list[type]:
    return [kind for root in sources.RECORDS for kind in subclasses(root)]


def main(arguments: list[str]) -> int:
    """Writes the file; with `--check` 1 when it is not what the code says."""
    found = facts()
    if "--check" not in arguments:
        TARGET.write_text(text(found), encoding="utf-8")
        return 0
    lines = list(differences(read(), found))
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
