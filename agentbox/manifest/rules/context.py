"""What a rule may read. Everything is an argument: a rule opens no file, reads no environment and knows no clock."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from agentbox.manifest.features.available import gates
from agentbox.manifest.features.corpus import skill_names
from agentbox.manifest.features.exceptions import seccomp_files
from agentbox.manifest.features.model import Feature
from agentbox.manifest.features.ports import ListenerSpec, port_table
from agentbox.manifest.features.slots import SlotClass, slot_class
from agentbox.manifest.findings import SEVERITIES, Finding, Related
from agentbox.manifest.keys import flatten, generic_path, keys
from agentbox.manifest.load import Manifest
from agentbox.manifest.model import Model
from agentbox.manifest.rules.lock_input import LockInput
from agentbox.policy.policy import Policy

GATES: Final = gates()
"""What decides which features are on: the keys that a rule about features reads."""

PORT_KEYS: Final = (
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
    *GATES,
)
"""What decides the port table: the keys that a rule about ports reads."""


class InvalidValue(Exception):
    """A rule asked for a value that E016 withdrew; `key` is what to mend."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


@dataclass(frozen=True)
class RuleInput:
    """The arguments of one run, shared by all rules."""

    manifest: Manifest
    features: Mapping[str, Feature]
    enabled: tuple[str, ...]
    lock: LockInput | None
    environment: Mapping[str, str] | None
    systems: tuple[str, ...]

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """Every effective value, computed once a run."""
        return dict(flatten(self.manifest.usable))

    @cached_property
    def policies(self) -> dict[str, Policy]:
        """Effective policies by name, each made once a run; `manifest/rules/agents/_policies.py` fills it."""
        return {}


@dataclass(frozen=True)
class RuleContext:
    """One rule's sight of a run; `read` collects what it asks for. `table` and `entry` are those of its map."""

    code: str
    inputs: RuleInput
    table: str = ""
    entry: str = ""
    errors: frozenset[str] = frozenset()
    keys_read: set[str] = field(default_factory=set)

    @property
    def model(self) -> Model:
        """The model, for helpers that take it whole. The caller reads the keys concerned through the view first."""
        return self.inputs.manifest.usable

    @property
    def features(self) -> Mapping[str, Feature]:
        """Every feature."""
        return self.inputs.features

    @property
    def enabled_features(self) -> tuple[str, ...]:
        """The features that are on. Reads every gate."""
        for key in GATES:
            self[key]
        return self.inputs.enabled

    @property
    def lock(self) -> LockInput | None:
        """None = not given."""
        return self.inputs.lock

    @property
    def systems(self) -> tuple[str, ...]:
        """Target systems; empty when neither an argument nor `image.systems` names any."""
        return self.inputs.systems or tuple(self["image.systems"])

    @property
    def skills(self) -> frozenset[str]:
        """The names of the corpus."""
        return skill_names()

    @property
    def seccomp_files(self) -> frozenset[str]:
        """The names that a seccomp field may hold."""
        return seccomp_files()

    @cached_property
    def ports(self) -> tuple[ListenerSpec, ...]:
        """The port table. Reads every key that owns a port."""
        for key in PORT_KEYS:
            self[key]
        return port_table(self.model, self.features, self.inputs.enabled)

    def __getitem__(self, key: str) -> Any:
        """The effective value of a key; `*` stands for the present entry. Raises Unusable."""
        path = self._record_read(key)
        if self.inputs.manifest.invalid:
            self._check_valid(path)
            if (
                source := keys()[generic_path(path)].inherits
            ) and path not in self.inputs.manifest.positions:
                self._check_valid(source)
        return self.inputs.values[path]

    def is_written(self, key: str) -> bool:
        """True when the file itself has the key. Raises Unusable as `[]` does."""
        self[key]
        return self.path(key) in self.inputs.manifest.positions

    def raw_value(self, key: str) -> Any:
        """The value in the file, where a default that depends on another key hides it; None when absent."""
        self[key]
        node: Any = self.inputs.manifest.written
        for part in self.path(key).split("."):
            node = node.get(part) if isinstance(node, dict) else None
        return node

    def names(self, table: str) -> tuple[str, ...]:
        """The names of the entries of a map, sorted; a withdrawn entry is left out."""
        self.keys_read.add(table)
        node: Any = self.model
        for part in table.split("."):
            node = getattr(node, part)
        return tuple(sorted(node))

    def has(self, table: str, name: str) -> bool:
        """Whether a map has that entry. Raises Unusable for one that was withdrawn."""
        for invalid in self.inputs.manifest.invalid:
            if invalid in (table, f"{table}.{name}"):
                raise InvalidValue(invalid)
        return name in self.names(table)

    def slot_class(self, slot: str) -> SlotClass:
        """local, external or off."""
        return slot_class(self[f"adapters.{slot}.use"])

    def is_unset(self, variable: str) -> bool:
        """True when the environment was given and the variable is unset or empty in it."""
        environment = self.inputs.environment
        return environment is not None and not environment.get(variable)

    def variable(self, name: str) -> str:
        """The value of a variable; "" when it is unset or the environment was not given."""
        return (self.inputs.environment or {}).get(name, "")

    def strings(self) -> Iterator[tuple[str, str]]:
        """Every string that is written, with its key; withdrawn values are left out."""
        self.keys_read.add("**")
        for key, value in self.inputs.values.items():
            if key in self.inputs.manifest.positions:
                yield from ((key, text) for text in _strings(value))

    def path(self, key: str) -> str:
        """The key with `*` filled in."""
        return key.replace("*", self.entry, 1)

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
