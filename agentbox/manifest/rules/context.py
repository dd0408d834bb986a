"""The input of rules. Everything is an argument: a rule opens no file and reads neither environment
nor clock.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from agentbox.manifest.declarations.key_path import fill_entry, split_names
from agentbox.manifest.features.model import Feature
from agentbox.manifest.features.ports import ListenerSpec, port_table
from agentbox.manifest.features.security_exceptions import seccomp_files
from agentbox.manifest.features.supported_choices import gates
from agentbox.manifest.findings import SEVERITIES, Finding, Related
from agentbox.manifest.keys import flatten, generic_path, keys
from agentbox.manifest.load import Manifest
from agentbox.manifest.model import Model
from agentbox.manifest.rules.unvalidated_lock import UnvalidatedLock
from agentbox.manifest.tables.slots import SlotClass, slot_class
from agentbox.policy.policy import Policy

_GATE_MAP: Final = "mcp.servers"
_GATE_KEYS: Final = gates()
GATES: Final = (*_GATE_KEYS, _GATE_MAP)
"""The keys that decide which features are enabled, read by rules about features."""

_PORT_KEYS: Final = (
    "api.port",
    "observability.metrics_port",
    "privacy.port",
    "privacy.enabled",
    "privacy.mode",
    "adapters.orchestrator.use",
    "desktop.port",
    "sovereign_mesh.relay.enabled",
    "sovereign_mesh.relay.expose",
    "sovereign_mesh.relay.implementation",
    "sovereign_mesh.relay.port",
)
PORT_KEYS: Final = (*_PORT_KEYS, *GATES)
"""The keys that decide the port table, read by rules about ports."""


class InvalidValue(Exception):
    """A rule needs a value that E016 rejected; `key` is the key to fix."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


@dataclass(frozen=True)
class RuleInput:
    """The arguments of a run, shared by all rules."""

    manifest: Manifest
    features: Mapping[str, Feature]
    enabled: tuple[str, ...]
    lock: UnvalidatedLock | None
    environment: Mapping[str, str] | None
    systems: tuple[str, ...]

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """All effective values, computed once per run."""
        return dict(flatten(self.manifest.usable))

    @cached_property
    def policies(self) -> dict[str, Policy]:
        """Effective policies by name, cached per run by `manifest/rules/agents/_policies.py`."""
        return {}


@dataclass(frozen=True)
class RuleContext:
    """The view of one rule; `keys_read` collects what it reads. `table` and `entry` are those of
    its map.
    """

    code: str
    inputs: RuleInput
    table: str = ""
    entry: str = ""
    errors: frozenset[str] = frozenset()
    keys_read: set[str] = field(default_factory=set)

    @property
    def model(self) -> Model:
        """The model, for helpers that need all of it. The caller first reads the relevant keys
        through the context.
        """
        return self.inputs.manifest.usable

    @property
    def features(self) -> Mapping[str, Feature]:
        """All features."""
        return self.inputs.features

    @property
    def enabled_features(self) -> tuple[str, ...]:
        """The enabled features. Reads all gates."""
        self._read_gates()
        return self.inputs.enabled

    @property
    def lock(self) -> UnvalidatedLock | None:
        """None = not given."""
        return self.inputs.lock

    @property
    def systems(self) -> tuple[str, ...]:
        """Target systems; empty if neither an argument nor `image.systems` sets any."""
        return self.inputs.systems or tuple(self["image.systems"])

    @property
    def skills(self) -> frozenset[str]:
        """The names in the skills corpus."""
        from agentbox.manifest.skills.corpus import skill_names  # few manifests choose skills

        return skill_names()

    @property
    def seccomp_files(self) -> frozenset[str]:
        """Valid values of a seccomp field."""
        return seccomp_files()

    @cached_property
    def ports(self) -> tuple[ListenerSpec, ...]:
        """The port table. Reads all keys that own a port."""
        for key in _PORT_KEYS:
            self[key]
        self._read_gates()
        return port_table(self.model, self.features, self.inputs.enabled)

    def __getitem__(self, key: str) -> Any:
        """The effective value of a key; `*` stands for the current entry. Raises InvalidValue."""
        path = self._record_read(key)
        if self.inputs.manifest.invalid:
            self._check_valid(path)
            if (
                source := keys()[generic_path(path)].inherits
            ) and path not in self.inputs.manifest.positions:
                self._check_valid(source)
        return self.inputs.values[path]

    def is_written(self, key: str) -> bool:
        """True if the key is in the file. Raises InvalidValue as `[]` does."""
        self[key]
        return self.path(key) in self.inputs.manifest.positions

    def raw_value(self, key: str) -> Any:
        """The value in the file, even if a dependent default hides it; None if absent."""
        self[key]
        node: Any = self.inputs.manifest.written
        for name in split_names(self.path(key)):
            node = node.get(name) if isinstance(node, dict) else None
        return node

    def names(self, table: str) -> tuple[str, ...]:
        """The names of the entries of a map, sorted, without invalid ones. `*` as in `[]`."""
        self.keys_read.add(table)
        node: Any = self.model
        for name in split_names(self.path(table)):
            node = node[name] if isinstance(node, Mapping) else getattr(node, name)
        return tuple(sorted(node))

    def has(self, table: str, name: str) -> bool:
        """Whether a map has that entry. Raises InvalidValue for an invalid one."""
        for invalid in self.inputs.manifest.invalid:
            if invalid in (table, f"{table}.{name}"):
                raise InvalidValue(invalid)
        return name in self.names(table)

    def slot_class(self, slot: str) -> SlotClass:
        """local, external or off."""
        return slot_class(self[f"adapters.{slot}.use"])

    def is_unset(self, variable: str) -> bool:
        """True if the environment was given and the variable is unset or empty in it."""
        environment = self.inputs.environment
        return environment is not None and not environment.get(variable)

    def variable(self, name: str) -> str:
        """The value of a variable; "" if it is unset or no environment was given."""
        return (self.inputs.environment or {}).get(name, "")

    def strings(self) -> Iterator[tuple[str, str]]:
        """All strings in the file, with their keys, without invalid values."""
        self.keys_read.add("**")
        for key, value in self.inputs.values.items():
            if key in self.inputs.manifest.positions:
                yield from ((key, text) for text in _strings(value))

    def path(self, key: str) -> str:
        """The key with `*` filled in."""
        return fill_entry(key, self.entry) if self.entry else key

    def finding(
        self, key: str, *, message: str, remedy: str, related: tuple[str, ...] = ()
    ) -> Finding:
        """A finding of this rule at that key."""
        path = self.path(key)
        line, column = self.inputs.manifest.position_of(path)
        return Finding(
            code=self.code,
            severity=SEVERITIES[self.code[0]],
            key=path,
            line=line,
            column=column,
            message=message,
            remedy=remedy,
            related=tuple(
                Related(key=related_key, line=self.inputs.manifest.position_of(related_key).line)
                for related_key in map(self.path, related)
            ),
        )

    def _read_gates(self) -> None:
        for key in _GATE_KEYS:
            self[key]
        self.names(_GATE_MAP)

    def _check_valid(self, path: str) -> None:
        for invalid in self.inputs.manifest.invalid:
            if path == invalid or path.startswith((f"{invalid}.", f"{invalid}[")):
                raise InvalidValue(invalid)

    def _record_read(self, key: str) -> str:
        self.keys_read.add(generic_path(key))
        return self.path(key)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield str(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _strings(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _strings(getattr(value, name))
