"""The class of each `adapters.<slot>.use`. The keys are the values that the schema allows."""

from collections.abc import Mapping
from importlib import import_module

from agentbox.adapters.runtime.adapter import Adapter, SlotName
from agentbox.core.slot_errors import UnknownAdapterImpl

_HERE = "agentbox.adapters"
REGISTRY: Mapping[tuple[SlotName, str], str] = {
    ("beads", "local-sqlite"): f"{_HERE}.beads.local_sqlite:LocalSqliteBeads",
    ("beads", "external-http"): f"{_HERE}.remote.beads:ExternalHttpBeads",
    ("beads", "external-pg"): f"{_HERE}.beads.external_pg:ExternalPgBeads",
    ("beads", "off"): f"{_HERE}.beads.off:OffBeads",
    ("pods", "local-fs"): f"{_HERE}.pods.local_fs:LocalFsPods",
    ("pods", "external-solid"): f"{_HERE}.pods.external_solid:ExternalSolidPods",
    ("pods", "off"): f"{_HERE}.pods.off:OffPods",
    ("memory", "local-sqlite"): f"{_HERE}.memory.local_sqlite:LocalSqliteMemory",
    ("memory", "external-pg"): f"{_HERE}.memory.external_pg:ExternalPgMemory",
    ("memory", "off"): f"{_HERE}.memory.off:OffMemory",
    ("events", "local-jsonl"): f"{_HERE}.events.local_jsonl:LocalJsonlEvents",
    ("events", "external-http"): f"{_HERE}.events.external_http:ExternalHttpEvents",
    ("events", "off"): f"{_HERE}.events.off:OffEvents",
    (
        "orchestrator",
        "local-process",
    ): f"{_HERE}.orchestrator.local_process:LocalProcessOrchestrator",
    (
        "orchestrator",
        "external-stdio",
    ): f"{_HERE}.orchestrator.external_stdio:ExternalStdioOrchestrator",
    ("orchestrator", "off"): f"{_HERE}.orchestrator.off:OffOrchestrator",
}


def allowed(slot: SlotName) -> tuple[str, ...]:
    """Return the allowed values of `use` for a slot, in schema order."""
    return tuple(impl for name, impl in REGISTRY if name == slot)


def resolve(slot: SlotName, impl: str) -> type[Adapter]:
    """Return the class. Raises UnknownAdapterImpl with the allowed values."""
    target = REGISTRY.get((slot, impl))
    if target is None:
        raise UnknownAdapterImpl(
            f'adapters.{slot}.use = "{impl}" is unknown; allowed: {", ".join(allowed(slot))}',
            f"set adapters.{slot}.use in agentbox.toml to one of them",
        )
    module, name = target.split(":")
    adapter_class: type[Adapter] = getattr(import_module(module), name)
    return adapter_class
