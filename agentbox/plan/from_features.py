"""What the feature files that are on add to a plan: programs, ports, probes, volumes, passwords, environment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from agentbox.core.paths import Paths
from agentbox.manifest.features.model import Feature, FixedPort
from agentbox.plan.errors import PlanError
from agentbox.plan.model import Delta, Password, Port, Probe, Program, Ready, Ruleset, Volume
from agentbox.plan.names import FEATURE_GROUP
from agentbox.plan.network import LOOPBACK
from agentbox.plan.placeholders import PASSWORD, filled, image_words
from agentbox.plan.programs import FEATURE_PRIORITIES
from agentbox.plan.rulesets import SANDBOX, ruleset

_R = TypeVar("_R")
_DEEP = ("exec", "http", "layer-files")  # kinds that run after the seal unless their file says otherwise
_CHILDREN = ("exec", "python-import")  # kinds that start a process, which gets the feature's environment


@dataclass(frozen=True)
class Contribution:
    """The sum over all features that are on, in the order of their names."""

    programs: tuple[Program, ...]
    rulesets: Mapping[str, Ruleset]
    ports: tuple[Port, ...]
    probes: tuple[Probe, ...]
    volumes: tuple[Volume, ...]
    passwords: tuple[Password, ...]
    env: Mapping[str, str]


def contribution(
    features: Iterable[Feature], values: Mapping[str, Any], system: str, python: str, exceptions: Sequence[Delta] = ()
) -> Contribution:
    """`values` are effective values by key path: what words in braces stand for (see `plan.placeholders`). `exceptions`: the box's.

    Raises PlanError naming the feature whose table has an unknown or missing field, a wrong priority or an unknown
    word, and for a variable that two features set differently.
    """
    rows = sorted(features, key=lambda feature: feature.name)
    words = {**values, **image_words(system, python)}
    return Contribution(
        programs=tuple(_program(row.name, table, words) for row in rows for table in row.programs),
        rulesets={
            table["name"]: ruleset(row, table, words, values, exceptions) for row in rows for table in row.programs
        },
        ports=tuple(_port(row.name, port, values) for row in rows for port in row.ports),
        probes=tuple(_probe(row, table, words) for row in rows for table in row.probes),
        volumes=tuple(_record(Volume, row.name, table) for row in rows for table in row.volumes),
        passwords=tuple(
            _password(row.name, table, values) for row in rows for table in row.programs if PASSWORD in table
        ),
        env=_environment(rows, words),
    )


def _port(feature: str, port: FixedPort, values: Mapping[str, Any]) -> Port:
    number = values[port.key] if port.key else port.port
    publish = LOOPBACK if port.publish else ""
    return Port(owner=port.key or feature, name=port.name, port=number, publish=publish)


def _environment(rows: Iterable[Feature], words: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows:
        for name, value in filled(row.env, words, row.name).items():
            if found.setdefault(name, value) != value:
                raise PlanError(
                    f"cannot use feature {row.name}: it sets {name} to {value!r}, another feature to {found[name]!r}",
                    "set it in the program's own env",
                )
    return dict(sorted(found.items()))


def _password(feature: str, table: Mapping[str, Any], values: Mapping[str, Any]) -> Password:
    """`key` names the manifest key that holds a variable's name; without one, or with none named, boot makes it."""
    wanted = table[PASSWORD]
    return _record(
        Password, feature, {"file": wanted["file"], "secret": values[wanted["key"]] if "key" in wanted else ""}
    )


def _program(feature: str, table: Mapping[str, Any], words: Mapping[str, Any]) -> Program:
    bare = {name: value for name, value in table.items() if name not in (PASSWORD, SANDBOX)}
    if PASSWORD in table:
        words = {**words, PASSWORD: str(Paths().password(table[PASSWORD]["file"]))}
    given = filled(bare, words, feature)
    defaults = {"group": FEATURE_GROUP, "startsecs": 1, "log": "file", "required": True}
    found = _record(Program, feature, {**defaults, **given, "ready": _ready(feature, given)})
    if found.priority not in FEATURE_PRIORITIES:
        low, high = FEATURE_PRIORITIES[0], FEATURE_PRIORITIES[-1]
        raise PlanError(
            f"cannot plan program {found.name} of feature {feature}: priority {found.priority}", f"use {low} to {high}"
        )
    return found


def _ready(feature: str, table: Mapping[str, Any]) -> Ready:
    return _record(Ready, feature, table.get("ready", {"by": "state"}))


def _probe(feature: Feature, table: Mapping[str, Any], words: Mapping[str, Any]) -> Probe:
    bare = {name: value for name, value in table.items() if name != "optional"}
    kind, required = table.get("kind"), not table.get("optional", False)
    env = feature.env if kind in _CHILDREN else {}
    given = filled({"stage": "deep" if kind in _DEEP else "boot", **bare, "env": env}, words, feature.name)
    return _record(Probe, feature.name, {**given, "required": required, "feature": feature.name})


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
