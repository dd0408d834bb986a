"""The inputs of a lock as one digest: equal inputs need no new lock."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field

from agentbox.core.canonical import canonical_json, digest
from agentbox.core.frozen import frozen
from agentbox.plan.lockfile.model import Lock


@frozen
class RequestedPackages:
    """The package lists of one feature (or, as `core`, of the box itself), in the syntax of each
    source.
    """

    debian: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    npm_scripts_ignored: str = ""
    npm_optional_ignored: str = ""
    unused_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@frozen
class LockInputs:
    """Everything that determines the packages of a lock."""

    source: str
    suite: str
    python: str
    systems: tuple[str, ...]
    features: Mapping[str, RequestedPackages]
    extra_packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()  # the application's own, from pyproject.toml
    unused_requirements: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # by distribution; not locked
    skills: Mapping[str, str] = field(default_factory=dict)  # digests by name; pinned, not resolved

    def digest(self) -> str:
        """`sha256:<hex>` over canonical JSON, independent of the order of lists and tables. Skills
        do not count: they need no resolving."""
        return inputs_digest(self)

    def difference(self, lock: Lock) -> str:
        """The first difference between the lock and these inputs; "" if there is none."""
        if lock.inputs == self.digest():
            return self.skill_difference(lock)
        return _first_difference(self, lock) or "package lists changed"

    def skill_difference(self, lock: Lock) -> str:
        """How the skills differ from those of the lock; "" if they do not."""
        changed = [
            f"skill {name} was changed"
            for name, digest in sorted(self.skills.items())
            if lock.skills.get(name, digest) != digest
        ]
        listed = _changes("skill", self.skills, tuple(lock.skills))
        return ", ".join(part for part in (listed, *changed) if part)


def inputs_digest(inputs: LockInputs) -> str:
    """The value of the lock's key `inputs`."""
    values = asdict(inputs)
    del values["skills"]
    for requested in values["features"].values():  # the digest of other features is as before
        if not requested["npm_optional_ignored"]:
            del requested["npm_optional_ignored"]
    return digest(canonical_json(_sorted(values)))


def _sorted(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _sorted(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return sorted(value)
    return value


def _first_difference(inputs: LockInputs, lock: Lock) -> str:
    for key, current, locked in (
        ("source", inputs.source, lock.source),
        ("suite", inputs.suite, lock.suite),
        ("Python", inputs.python, lock.python),
    ):
        if current != locked:
            return f"{key} {current} instead of {locked}"
    return _changes("system", inputs.systems, lock.systems) or _changes(
        "feature", inputs.features, lock.features
    )


def _changes(
    kind: str, current: Sequence[str] | Mapping[str, object], locked: Sequence[str]
) -> str:
    added, removed = sorted(set(current) - set(locked)), sorted(set(locked) - set(current))
    parts = [f"{kind} {name} was added" for name in added] + [
        f"{kind} {name} was removed" for name in removed
    ]
    return ", ".join(parts)
