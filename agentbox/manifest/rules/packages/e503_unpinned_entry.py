"""E503: a lock entry without size or digest."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import RuleContext
from agentbox.manifest.rules.unvalidated_lock import UnvalidatedLock

CODE, SINCE = "E503", "0.1"
TITLE = "unpinned entry"
REASON = "Size and SHA-256 pin an entry: without them any file of that name would be accepted."
READS = ("image.source",)
BAD = ""
GOOD = ""
_ROW = {"name": "git", "size": 1, "sha256": "0" * 64}
CONTEXT = {
    "bad": {
        "lock": UnvalidatedLock(True, {"suite": "trixie", "wheels": {"files": [{"name": "git"}]}}),
        "features": {},
    },
    "good": {
        "lock": UnvalidatedLock(True, {"suite": "trixie", "wheels": {"files": [_ROW]}}),
        "features": {},
    },
}


_MAX_LISTED = 5
_HASH = re.compile(r"[0-9a-f]{64}")


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, naming the entries."""
    if context.lock is None:
        return
    if context["image.source"] == "nixpkgs":
        if context.lock.flake is not None and not context.lock.nixpkgs_hash:
            yield context.finding(
                "image.source",
                message="flake.lock pins no nixpkgs: it has no node of that input with a narHash",
                remedy="Run `nix flake lock` to write it again.",
            )
        return
    unpinned = [
        f"{row.get('name', '?')} ({table})"
        for table, row in context.lock.rows()
        if not _is_pinned(row)
    ]
    if unpinned:
        more = f" and {len(unpinned) - _MAX_LISTED} more" if len(unpinned) > _MAX_LISTED else ""
        yield context.finding(
            "image",
            message="agentbox.lock has no SHA-256 or no size for "
            f"{', '.join(unpinned[:_MAX_LISTED])}{more}",
            remedy="Run `agentbox lock` to write these entries again.",
        )


def _is_pinned(row: Mapping[str, Any]) -> bool:
    size = row.get("size")
    return (
        isinstance(size, int)
        and size > 0
        and _HASH.fullmatch(str(row.get("sha256", ""))) is not None
    )
