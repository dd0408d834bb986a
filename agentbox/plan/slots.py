"""The five slots as resolved: implementation, whether required, and the options that this
implementation reads.
"""

from collections.abc import Mapping
from typing import Any

from agentbox.plan.model import SlotPlan

SLOTS = ("beads", "pods", "memory", "events", "orchestrator")

_TOKEN = ("endpoint", "token_env", "token_file", "timeout_seconds", "ca_file")
_POSTGRES = ("dsn_env", "dsn_file", "schema", "pool_size", "timeout_seconds")
_JOURNAL = ("segment_size", "max_size", "fsync")

# The keys read by each implementation.
OPTIONS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("beads", "local-sqlite"): ("lease_seconds",),
    ("beads", "external-http"): _TOKEN,
    ("beads", "external-pg"): (*_POSTGRES, "ca_file", "lease_seconds"),
    ("pods", "local-fs"): ("quota", "max_object", "quota_objects"),
    ("pods", "external-solid"): (*_TOKEN, "auth", "max_object"),
    ("memory", "local-sqlite"): ("embedder", "namespace_size", "namespace_entries"),
    ("memory", "external-pg"): (
        *_POSTGRES,
        "ca_file",
        "embedder",
        "namespace_size",
        "namespace_entries",
    ),
    ("events", "local-jsonl"): _JOURNAL,
    ("events", "external-http"): (*_TOKEN, "tee_local", *_JOURNAL),
    ("orchestrator", "local-process"): ("max_agents", "max_depth", "grace_seconds"),
    ("orchestrator", "external-stdio"): ("command", "env", "cwd", "timeout_seconds"),
}


def resolve_slots(adapters: Mapping[str, Mapping[str, Any]]) -> dict[str, SlotPlan]:
    """`adapters` is the effective table `[adapters]`, sizes in bytes. A slot that is off is never
    required.
    """
    return {name: _slot(name, adapters[name]) for name in SLOTS}


def _slot(name: str, table: Mapping[str, Any]) -> SlotPlan:
    use = str(table["use"])
    options = {key: table[key] for key in sorted(OPTIONS.get((name, use), ())) if key in table}
    return SlotPlan(use=use, required=bool(table["required"]) and use != "off", options=options)
