"""What the feature files that are on add to a plan: programs, ports, probes, volumes, environment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from agentbox.features import Feature
from agentbox.plan.errors import PlanError
from agentbox.plan.model import Port, Probe, Program, Ready, Volume
from agentbox.plan.names import FEATURE_GROUP
from agentbox.plan.network import LOOPBACK
from agentbox.plan.programs import FEATURE_PRIORITIES

_R = TypeVar("_R")
_DEEP = ("exec", "http")  # kinds that run after the seal unless their file says otherwise


@dataclass(frozen=True)
class Contribution:
    """The sum over all features that are on, in the order of their names."""

    programs: tuple[Program, ...]
    ports: tuple[Port, ...]
    probes: tuple[Probe, ...]
    volumes: tuple[Volume, ...]
    env: Mapping[str, str]


def contribution(features: Iterable[Feature]) -> Contribution:
    """Raises PlanError naming the feature whose table has an unknown or missing field, or a wrong priority."""
    rows = sorted(features, key=lambda feature: feature.name)
    return Contribution(
        programs=tuple(_program(feature.name, table) for feature in rows for table in feature.programs),
        ports=tuple(
            Port(owner=feature.name, name=port.name, port=port.port, publish=LOOPBACK if port.publish else "")
            for feature in rows
            for port in feature.ports
        ),
        probes=tuple(_probe(feature.name, table) for feature in rows for table in feature.probes),
        volumes=tuple(_record(Volume, feature.name, table) for feature in rows for table in feature.volumes),
        env={name: value for feature in rows for name, value in sorted(feature.env.items())},
    )


def _program(feature: str, table: Mapping[str, Any]) -> Program:
    defaults = {"group": FEATURE_GROUP, "startsecs": 1, "log": "file", "required": False}
    found = _record(Program, feature, {**defaults, **table, "ready": _ready(feature, table)})
    if found.priority not in FEATURE_PRIORITIES:
        low, high = FEATURE_PRIORITIES[0], FEATURE_PRIORITIES[-1]
        raise PlanError(
            f"cannot plan program {found.name} of feature {feature}: priority {found.priority}", f"use {low} to {high}"
        )
    return found


def _ready(feature: str, table: Mapping[str, Any]) -> Ready:
    return _record(Ready, feature, table.get("ready", {"by": "state"}))


def _probe(feature: str, table: Mapping[str, Any]) -> Probe:
    bare = {name: value for name, value in table.items() if name != "optional"}
    stage = "deep" if table.get("kind") in _DEEP else "boot"
    required = not table.get("optional", False)
    return _record(Probe, feature, {"stage": stage, **bare, "required": required, "feature": feature})


def _record(kind: type[_R], feature: str, table: Mapping[str, Any]) -> _R:
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(table) - known):
        raise PlanError(
            f"cannot use feature {feature}: {kind.__name__} has no field {unknown[0]}",
            f"fields: {', '.join(sorted(known))}",
        )
    frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in table.items()}
    try:
        return kind(**frozen)
    except TypeError as error:
        raise PlanError(f"cannot use feature {feature}: {error}", "complete its file in config/features") from error
