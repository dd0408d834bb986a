"""What enabled features add to a plan: programs, ports, probes, volumes, passwords, environment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from agentbox.core.paths import Paths
from agentbox.manifest.features.model import Feature, FixedPort
from agentbox.plan.errors import PlanError
from agentbox.plan.features.placeholders import PASSWORD, fill_placeholders, image_placeholders
from agentbox.plan.features.rulesets import SANDBOX, build_ruleset
from agentbox.plan.model import (
    Password,
    Port,
    Probe,
    Program,
    ReadySignal,
    Ruleset,
    SecurityExceptionPlan,
    VolumePlan,
)
from agentbox.plan.names import FEATURE_GROUP
from agentbox.plan.network import LOOPBACK
from agentbox.plan.programs import FEATURE_PRIORITIES

_R = TypeVar("_R")
_DEEP_KINDS = (
    "exec",
    "http",
    "layer-files",
)  # kinds that run after the seal by default
_PROCESS_KINDS = (
    "exec",
    "python-import",
)  # kinds that start a process, with the feature's environment


@dataclass(frozen=True)
class FeatureAdditions:
    """The sum over all enabled features, in name order."""

    programs: tuple[Program, ...]
    rulesets: Mapping[str, Ruleset]
    ports: tuple[Port, ...]
    probes: tuple[Probe, ...]
    volumes: tuple[VolumePlan, ...]
    passwords: tuple[Password, ...]
    env: Mapping[str, str]


def build_contribution(
    features: Iterable[Feature],
    values: Mapping[str, Any],
    system: str,
    python: str,
    exceptions: Sequence[SecurityExceptionPlan] = (),
) -> FeatureAdditions:
    """`values` are effective values by key path, used for placeholders (see `placeholders`).
    `exceptions`: those of the box. Raises PlanError naming the feature for an unknown or missing
    field, a wrong priority, an unknown placeholder, and a variable with different values in two
    features.
    """
    rows = sorted(features, key=lambda feature: feature.name)
    placeholders = {**values, **image_placeholders(system, python)}
    return FeatureAdditions(
        programs=tuple(
            _program(row.name, table, placeholders) for row in rows for table in row.programs
        ),
        rulesets={
            table["name"]: build_ruleset(row, table, placeholders, values, exceptions)
            for row in rows
            for table in row.programs
        },
        ports=tuple(_port(row.name, port, values) for row in rows for port in row.ports),
        probes=tuple(_probe(row, table, placeholders) for row in rows for table in row.probes),
        volumes=tuple(
            _build_record(VolumePlan, row.name, table) for row in rows for table in row.volumes
        ),
        passwords=tuple(
            _password(row.name, table, values)
            for row in rows
            for table in row.programs
            if PASSWORD in table
        ),
        env=_environment(rows, placeholders),
    )


def _port(feature: str, port: FixedPort, values: Mapping[str, Any]) -> Port:
    number = values[port.key] if port.key else port.port
    publish = LOOPBACK if port.publish else ""
    return Port(owner=port.key or feature, name=port.name, port=number, publish=publish)


def _environment(rows: Iterable[Feature], placeholders: Mapping[str, Any]) -> dict[str, str]:
    environment: dict[str, str] = {}
    for row in rows:
        for name, value in fill_placeholders(row.env, placeholders, row.name).items():
            if environment.setdefault(name, value) != value:
                raise PlanError(
                    f"cannot use feature {row.name}: it sets {name} to {value!r}, another feature "
                    f"to {environment[name]!r}",
                    "set it in the program's own env",
                )
    return dict(sorted(environment.items()))


def _password(feature: str, table: Mapping[str, Any], values: Mapping[str, Any]) -> Password:
    """`key` is the manifest key that names the secret; without one, or if it is empty, boot
    generates the password.
    """
    spec = table[PASSWORD]
    return _build_record(
        Password,
        feature,
        {"file": spec["file"], "secret": values[spec["key"]] if "key" in spec else ""},
    )


def _program(feature: str, table: Mapping[str, Any], placeholders: Mapping[str, Any]) -> Program:
    plain_fields = {name: value for name, value in table.items() if name not in (PASSWORD, SANDBOX)}
    if PASSWORD in table:
        placeholders = {**placeholders, PASSWORD: str(Paths().password(table[PASSWORD]["file"]))}
    filled = fill_placeholders(plain_fields, placeholders, feature)
    defaults = {"group": FEATURE_GROUP, "startsecs": 1, "log": "file", "required": True}
    program = _build_record(
        Program, feature, {**defaults, **filled, "ready": _ready_signal(feature, filled)}
    )
    if program.priority not in FEATURE_PRIORITIES:
        low, high = FEATURE_PRIORITIES[0], FEATURE_PRIORITIES[-1]
        raise PlanError(
            f"cannot plan program {program.name} of feature {feature}: priority {program.priority}",
            f"use {low} to {high}",
        )
    return program


def _ready_signal(feature: str, table: Mapping[str, Any]) -> ReadySignal:
    return _build_record(ReadySignal, feature, table.get("ready", {"by": "state"}))


def _probe(feature: Feature, table: Mapping[str, Any], placeholders: Mapping[str, Any]) -> Probe:
    plain_fields = {name: value for name, value in table.items() if name != "optional"}
    kind, required = table.get("kind"), not table.get("optional", False)
    env = feature.env if kind in _PROCESS_KINDS else {}
    filled = fill_placeholders(
        {"stage": "deep" if kind in _DEEP_KINDS else "boot", **plain_fields, "env": env},
        placeholders,
        feature.name,
    )
    return _build_record(
        Probe, feature.name, {**filled, "required": required, "feature": feature.name}
    )


def _build_record(kind: type[_R], feature: str, table: Mapping[str, Any]) -> _R:
    names = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(table) - names):
        raise PlanError(
            f"cannot use feature {feature}: {kind.__name__} has no field {unknown[0]}",
            f"fields: {', '.join(sorted(names))}",
        )
    frozen = {
        name: tuple(value) if isinstance(value, list) else value for name, value in table.items()
    }
    try:
        return kind(**frozen)
    except TypeError as error:
        raise PlanError(
            f"cannot use feature {feature}: {error}", "complete its file in config/features"
        ) from error
