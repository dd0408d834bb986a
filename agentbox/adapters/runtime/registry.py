"""The class of each `adapters.<slot>.use`. The keys are the values that the schema allows."""

from collections.abc import Mapping
from importlib import import_module

from agentbox.adapters.runtime.adapter import Adapter, SlotName
from agentbox.core.slot_errors import UnknownAdapterImpl

_PACKAGE = "agentbox.adapters"
REGISTRY: Mapping[tuple[SlotName, str], str] = {
    ("beads", "local-sqlite"): f"{_PACKAGE}.beads.local_sqlite:LocalSqliteBeads",
    ("beads", "external-http"): f"{_PACKAGE}.remote.beads:ExternalHttpBeads",
    ("beads", "external-pg"): f"{_PACKAGE}.beads.external_pg:ExternalPgBeads",
    ("beads", "off"): f"{_PACKAGE}.beads.off:OffBeads",
    ("pods", "local-fs"): f"{_PACKAGE}.pods.local_fs:LocalFsPods",
    ("pods", "external-solid"): f"{_PACKAGE}.pods.external_solid:ExternalSolidPods",
    ("pods", "off"): f"{_PACKAGE}.pods.off:OffPods",
    ("memory", "local-sqlite"): f"{_PACKAGE}.memory.local_sqlite:LocalSqliteMemory",
    ("memory", "external-pg"): f"{_PACKAGE}.memory.external_pg:ExternalPgMemory",
    ("memory", "off"): f"{_PACKAGE}.memory.off:OffMemory",
    ("events", "local-jsonl"): f"{_PACKAGE}.events.local_jsonl:LocalJsonlEvents",
    ("events", "external-http"): f"{_PACKAGE}.events.external_http:ExternalHttpEvents",
    ("events", "off"): f"{_PACKAGE}.events.off:OffEvents",
    (
        "orchestrator",
        "local-process",
    ): f"{_PACKAGE}.orchestrator.local_process:LocalProcessOrchestrator",
    (
        "orchestrator",
        "external-stdio",
    ): f"{_PACKAGE}.orchestrator.external_stdio:ExternalStdioOrchestrator",
    ("orchestrator", "off"): f"{_PACKAGE}.orchestrator.off:OffOrchestrator",
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
