"""Which members of a snapshot are of a state: what a cut stages, and nothing else. A file that the
box would find and use, such as a queued task of a program that no cut takes, does not come in.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from agentbox.api.known_stores import STORES

TREES: Final = ("mcp-host", "mesh", "orchestrator", "sessions", "tasks")
"""Folders below the state folder of which a cut takes every file but stores."""
SECRETS: Final = "secrets"
PLAN: Final = "box/plan.json"
MAX_PLAN: Final = 16 << 20  # bytes
_WHOLE: Final = ("pods/objects",)  # files of any name
_FILES: Final = (*TREES, "events")
_NEVER: Final = (".db", ".db-wal", ".db-shm", ".db-journal", ".new", ".tmp")
# Made again by the box, and once in snapshots: records of what was open, locks, indexes, probes.
_SKIPPED: Final = (
    "state/stores/",
    "state/lock",
    "state/probes/",
    "state/events/search.db",
    "state/pods/locks",
    "state/pods/held",
)


def slots() -> frozenset[str]:
    """The folders directly below the state folder that a snapshot fills."""
    return frozenset(path.split("/")[0] for path in (*STORES, *_FILES, *_WHOLE))


def is_skipped(path: str) -> bool:
    """It is read and not written."""
    return path.startswith(_SKIPPED)


def is_allowed(path: str, kind: str, *, secrets: bool) -> bool:
    """Whether a cut stages this member below `state/`; `secrets`: the snapshot has them."""
    below = path.removeprefix("state/")
    if path == "state" or below in STORES:
        return (kind == "folder") == (path == "state")
    trees = (*_FILES, SECRETS) if secrets else _FILES
    if kind == "folder":
        tops = (*STORES, *trees, *_WHOLE)
        return _is_below(below, (*trees, *_WHOLE)) or any(
            top == below or top.startswith(f"{below}/") for top in tops
        )
    return _is_below(below, _WHOLE) or (_is_below(below, trees) and not below.endswith(_NEVER))


def has_secrets(plan: bytes) -> bool:
    """Whether the plan of the snapshot takes secrets; False for what is not a plan."""
    try:
        document = json.loads(plan)
    except (ValueError, RecursionError):
        return False
    backup: Any = document.get("backup") if isinstance(document, Mapping) else None
    include: Any = backup.get("include") if isinstance(backup, Mapping) else None
    return isinstance(include, list) and SECRETS in include


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    return path.startswith(tuple(f"{folder}/" for folder in folders))
