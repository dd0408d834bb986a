"""Examples of what agentbox makes: its stores on disk, its metrics, documents of another shape than
the record that writes them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry

from frozen import sources

_OPEN_SECONDS: Final = 60.0
_LOCAL: Final[tuple[tuple[sources.SlotName, str], ...]] = (
    ("beads", "local-sqlite"),
    ("pods", "local-fs"),
    ("memory", "local-sqlite"),
    ("events", "local-jsonl"),
)


async def make_stores(folder: Path) -> None:
    """Every SQLite store of a box below `folder`, made by the class that the box uses."""
    paths, deps = sources.Paths(folder), sources.Deps(metrics=sources.metrics.Metrics())
    for slot, use in _LOCAL:
        options = sources.options_class(slot, use)()
        cfg = sources.SlotConfig(slot=slot, use=use, required=True, paths=paths, options=options)
        adapter = sources.registry.resolve(slot, use)(cfg, deps)
        await adapter.open(sources.Deadline.after(_OPEN_SECONDS))
        await adapter.close()
    stores = (
        sources.AgentStore(paths.slot(sources.HostConfig.directory)),
        sources.BudgetLedger(paths.slot(sources.GATEWAY)),
        sources.Outbox(paths.slot("mesh"), _nothing),
        sources.DeliveryLedger(paths.slot("events"), "external-http"),
    )
    for store in stores:
        await store.open()
        await store.close()
    sessions, access = sources.SessionStore(paths.slot("mesh")), sources.AccessStore(paths)
    await sessions.load()
    await sessions.close()
    await access.ensure_open()
    await access.close()


def collectors() -> Mapping[str, CollectorRegistry]:
    """What is shown as metrics, by whose it is."""
    names = ("slots", "box", "mesh host", "mesh client", "outbox", "http", "operators")
    found, nowhere = {name: CollectorRegistry() for name in names}, Path("/nonexistent")
    sources.metrics.Metrics(found["slots"])
    sources.BoxMetrics(found["box"], plan_digest="", image_digest="", models=nowhere)
    sources.HostMetrics(found["mesh host"])
    sources.ClientMetrics(found["mesh client"])
    sources.outbox_metrics(sources.Outbox(nowhere, _nothing), found["outbox"])
    found["http"].register(sources.HttpMetrics())
    sources.OperatorMetrics(found["operators"])
    return found


def documents() -> dict[str, Mapping[str, Any]]:
    """Examples of documents that have other members than the record that writes them."""
    posture, previous, digests = (
        sources.Posture(),
        sources.PreviousBoot(),
        dict.fromkeys(sources.sentinel.DIGESTS),
    )
    sealed = sources.sentinel.Sentinel("", "", 0.0, digests, (), "", 0, posture, (), previous)
    entry = sources.AgentRecord(
        agent_id="",
        spec=sources.AgentSpec(name=""),
        limits=sources.Limits(),
        principal="",
        request_id="",
    )
    row = {
        **entry.to_row(),
        "spec": "",
        "limits": "",
        "holding": "",
    }  # records that have a place of their own
    return {"file bootstrap.done": json.loads(sealed.to_bytes()), "agents.db agents.row": row}


def _nothing(_type: str, _data: Mapping[str, Any]) -> None:
    """Nobody listens."""
