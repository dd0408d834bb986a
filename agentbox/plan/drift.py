"""How two manifests differ, told from their plans alone: boot compares the mounted one with the baked one by this.

`Plan.apply` maps each effective key path to `<class> <value digest>`. It covers every key, live ones too (of a map entry
those that differ from their default, so that an added agent counts by what it says), hence the plan digest names one
exact manifest: a change of any class gives another digest. That is what the boot builds on
(after a change of boot class the variable that compose wrote differs from the digest computed in the box, which is
reported as information). Image recipe, compose and Kubernetes output are compared with digests masked, so a live key
alters nothing else in them. Standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentbox.core.canonical import canonical_json, sha256_hex

CLASSES = ("live", "boot", "recreate", "rebuild")
_DIGEST_LENGTH = 16  # hex digits: 64 bits tell the values of one key apart


def apply_table(values: Mapping[str, Any], classes: Mapping[str, str]) -> dict[str, str]:
    """The field `Plan.apply`. A key of `values` without class is a KeyError."""
    return {
        key: f"{classes[key]} {sha256_hex(canonical_json(values[key]))[:_DIGEST_LENGTH]}"
        for key in sorted(values)
    }


@dataclass(frozen=True)
class Drift:
    """Key paths that differ, by apply class, each sorted."""

    live: tuple[str, ...] = ()
    boot: tuple[str, ...] = ()
    recreate: tuple[str, ...] = ()
    rebuild: tuple[str, ...] = ()

    @property
    def worst(self) -> str:
        """The class that decides, or `""` when no effective value differs (a comment, or a default written out)."""
        return next((name for name in reversed(CLASSES) if getattr(self, name)), "")


def find_drift(old: Mapping[str, str], new: Mapping[str, str]) -> Drift:
    """Compares two `Plan.apply`. A key that only one of them has counts as changed, in the class stated there."""
    changed: dict[str, list[str]] = {name: [] for name in CLASSES}
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            changed[_apply_class(new.get(key) or old[key])].append(key)
    return Drift(**{name: tuple(keys) for name, keys in changed.items()})


def _apply_class(entry: str) -> str:
    return entry.partition(" ")[0]
