"""E503: an entry of the lock that does not pin its file."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import View
from agentbox.manifest.rules.lock_input import LockInput

CODE, SINCE = "E503", "0.1"
TITLE = "unpinned entry"
WHY = """Size and SHA-256 are what makes the lock worth something: an entry without them would accept any file of that
name."""
READS = ("image.source",)
BAD = ""
GOOD = ""
_ROW = {"name": "git", "size": 1, "sha256": "0" * 64}
CONTEXT = {
    "bad": {"lock": LockInput(True, {"suite": "trixie", "wheels": {"files": [{"name": "git"}]}}), "features": {}},
    "good": {"lock": LockInput(True, {"suite": "trixie", "wheels": {"files": [_ROW]}}), "features": {}},
}


_SHOWN = 5
_HASH = re.compile(r"[0-9a-f]{64}")


def check(view: View) -> Iterator[Finding]:
    """At most one finding, naming the entries."""
    if view.lock is None:
        return
    if view["image.source"] == "nixpkgs":
        if view.lock.flake is not None and not view.lock.nixpkgs_hash:
            yield view.finding(
                "image.source",
                message="flake.lock pins no nixpkgs: it has no node of that input with a narHash",
                remedy="Run `nix flake lock` to write it anew.",
            )
        return
    loose = [f"{row.get('name', '?')} ({table})" for table, row in view.lock.rows() if not _pinned(row)]
    if loose:
        more = f" and {len(loose) - _SHOWN} more" if len(loose) > _SHOWN else ""
        yield view.finding(
            "image",
            message=f"agentbox.lock has no SHA-256 or no size for {', '.join(loose[:_SHOWN])}{more}",
            remedy="Run `agentbox lock` to write these entries anew.",
        )


def _pinned(row: Mapping[str, Any]) -> bool:
    size = row.get("size")
    return isinstance(size, int) and size > 0 and _HASH.fullmatch(str(row.get("sha256", ""))) is not None
