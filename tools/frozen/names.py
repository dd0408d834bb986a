"""Closed sets of names that others read: events, metrics, variables, codes, keys, checks, files."""

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from prometheus_client.metrics import MetricWrapperBase

from frozen import code, events, examples, operations, sources
from frozen.records import flat
from frozen.surfaces import plain

_FILE: Final = (
    r"[A-Za-z0-9_.-]*[a-z0-9_]\.(conf|db|done|json|jsonl|key|lock|log|pid|sock|toml|token)"
)
_PAGE: Final = r"[a-z]+\.(css|html|js)"
_OTHERS: Final = {
    "label": r"org\.agentbox\.[a-z-]+",
    "header": r"(X|Agentbox)-[A-Z][A-Za-z-]+",
    "name": r"urn:agentbox:[a-z:]+",
}


def event_types() -> dict[str, str]:
    """Types of events in the journal, each with names of members of its data."""
    others = {
        *sources.AGENT_RPC_METHODS,
        *sources.hello.METHODS,
        *sources.manifest_keys(),
        sources.rpc.EVENT,
    }
    others |= {route.handler for route in sources.ROUTES} | {one.name for one in sources.ATTACKS}
    others |= {*code.written(sources.promised), *code.constants(_FILE), *code.constants(_PAGE)}
    return events.types(others) | {
        sources.journal_type(name): fields for name, (_, fields) in sources.BOOT_EVENTS.items()
    }


def boot() -> dict[str, str]:
    """Events of the boot with levels and fields, phases, digests of the sentinel, requirements."""
    found = {
        f"event {name}": f"{levels}: {fields}"
        for name, (levels, fields) in sources.BOOT_EVENTS.items()
    }
    found |= {f"phase {name}": f"stage {stage}" if stage else "" for name, stage in sources.PHASES}
    found |= {f"digest {name}": "" for name in sources.sentinel.DIGESTS}
    return found | {f"requirement {kind.family}": "" for kind in _below(sources.REQUIREMENT)}


def metrics() -> dict[str, str]:
    """Every metric as it is exposed: kind and labels."""
    found = {}
    for owner, registry in examples.collectors().items():
        for collector in registry._collector_to_names:
            own = collector if isinstance(collector, MetricWrapperBase) else None
            for metric in collector.collect() if own is None else own.describe():
                labels = getattr(own or metric, "_labelnames", ())  # known before any value is
                name = f"{metric.name}_total" if metric.type == "counter" else metric.name
                found[f"{owner} {name}"] = f"{metric.type}({', '.join(labels)})"
    return found


def environment() -> dict[str, str]:
    """Variables that the product reads or sets; those that a feature sets have its name."""
    features = sources.load_features()
    of_features = {name: f"feature {one.name}" for one in features.values() for name in one.env}
    return of_features | code.environment()


def problems() -> dict[str, str]:
    """Codes of errors: status, whether it helps to try again, own members."""
    kinds = {kind.code: kind for kind in _below(sources.PROBLEM)}
    return {
        name: ", ".join(
            (str(kind.status), *(("retryable",) if kind.retryable else ()), *kind.names)
        )
        for name, kind in kinds.items()
    }


def exit_codes() -> dict[str, str]:
    """What a command leaves with."""
    return {f"{code.value:03}": code.name for code in sources.ExitCode}


def manifest() -> dict[str, str]:
    """Keys of the manifest: the default and what is valid, as the published schema has them; what
    an absent key takes."""
    found = {
        path: plain(schema)
        for path, schema in sources.manifest_schema()
        if "properties" not in schema
    }
    for path, key in sources.manifest_keys().items():
        if key.required or key.inherits:
            found[f"{path} absent"] = "required" if key.required else f"as {key.inherits}"
    return found


def rules() -> dict[str, str]:
    """Codes of rules, and those that are in use no more."""
    return {name: rule.severity for name, rule in sources.rules().items()} | dict.fromkeys(
        sources.RETIRED, "retired"
    )


def sandbox() -> dict[str, str]:
    """Layers and classes of denials, limits, canaries, attacks, profiles, features, checks."""
    found = {f"denial layer {name}": "" for name in sources.denials.LAYERS}
    for (layer, rule, signature), kind in sources.denial_classes().items():
        found[f"denial {' '.join(part for part in (layer, rule, signature) if part)}"] = kind
    found |= {
        f"limit {row.name}": f"{row.unit}, {row.config_path}" for row in sources.LIMITS.values()
    }
    found |= {f"canary {name}": "" for name in sources.CANARIES}
    found |= {
        f"attack {one.name}": " | ".join(sorted(set(one.blocked_by.values())))
        for one in sources.ATTACKS
    }
    found |= {f"attack layer {name}": "" for name in sources.ATTACK_LAYERS}
    found |= {f"profile {name}": "" for name in sources.profiles()}
    found |= {
        f"feature {one.name}": one.gate.key if one.gate else ""
        for one in sources.load_features().values()
    }
    found |= {f"doctor check {one.name}": "" for one in sources.CHECKS}
    return found | {f"doctor state {name}": "" for name in sources.CHECK_STATES}


def files() -> dict[str, str]:
    """Paths of a box, names of files in the code, and names of ours on images and in requests."""
    found = {f"box {path}": "" for path in _paths(sources.Paths())}
    found |= {f"file {name}": "" for name in code.constants(_FILE)}
    return found | {
        f"{kind} {name}": "" for kind, form in _OTHERS.items() for name in code.constants(form)
    }


def documents() -> dict[str, str]:
    """Documents that code composes, as it writes them in an example."""
    return {
        f"{place}: {name}": kind
        for place, one in examples.documents().items()
        for name, kind in flat(one)
    }


def written() -> dict[str, str]:
    """Members of documents and messages that no record describes: what the code of each border
    spells by hand, or has from operations."""
    by_hand = {
        f"{place}: {name}": "" for place, things in sources.WRITTEN.items()
        for thing in things for name in code.written(thing)
    }  # fmt: skip
    return by_hand | {
        f"{place}: {name}": ""
        for place, names in operations.OF_OPERATIONS.items()
        for name in names
    }


def _below(kind: type) -> Iterator[Any]:
    """Of the product: tests that are imported too may have some of their own."""
    children: list[type] = kind.__subclasses__()
    for child in children:
        if sources.is_product(child.__module__):
            yield child
        yield from _below(child)


def _paths(paths: Any) -> Iterable[str]:
    """Every path that the class knows; `*` where it takes a name."""
    for name, member in inspect.getmembers_static(type(paths)):
        if name.startswith("_") or isinstance(member, classmethod) or name == "resolve":
            continue
        value = getattr(paths, name)
        found = value("*") if callable(value) else value
        if isinstance(found, Path):
            yield str(found)
