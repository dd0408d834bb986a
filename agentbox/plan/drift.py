"""Differences of two manifests, from their plans alone: at boot the mounted one is compared with
the baked one. `Plan.apply` maps each effective key path to `<class> <value digest>`. It covers all
keys, live ones too (in map entries only those that differ from their default, so that an added
agent counts by its settings), so the plan digest identifies one manifest: any change gives another
digest. The boot relies on that (after a change of boot class the variable written by compose
differs from the digest computed in the box, which is reported as information). Image recipe,
compose and Kubernetes output are compared with digests masked, so a live key changes nothing else
in them. Standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentbox.core.canonical import canonical_json, sha256_hex

CLASSES = ("live", "boot", "recreate", "rebuild")
_DIGEST_LENGTH = 16  # hex digits: 64 bits distinguish the values of one key


def apply_table(values: Mapping[str, Any], classes: Mapping[str, str]) -> dict[str, str]:
    """Builds `Plan.apply`. Raises KeyError for a key without class."""
    return {
        key: f"{classes[key]} {sha256_hex(canonical_json(values[key]))[:_DIGEST_LENGTH]}"
        for key in sorted(values)
    }


@dataclass(frozen=True)
class Drift:
    """Changed key paths by apply class, each sorted."""

    live: tuple[str, ...] = ()
    boot: tuple[str, ...] = ()
    recreate: tuple[str, ...] = ()
    rebuild: tuple[str, ...] = ()

    @property
    def worst(self) -> str:
        """The class that decides, or `""` if no effective value differs (a comment, or an explicit
        default).
        """
        return next((name for name in reversed(CLASSES) if getattr(self, name)), "")


def find_drift(old: Mapping[str, str], new: Mapping[str, str]) -> Drift:
    """Compares two `Plan.apply`. A key in only one of them counts as changed, in its
    class there.
    """
    changed: dict[str, list[str]] = {name: [] for name in CLASSES}
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            changed[_apply_class(new.get(key) or old[key])].append(key)
    return Drift(**{name: tuple(keys) for name, keys in changed.items()})


def _apply_class(entry: str) -> str:
    return entry.partition(" ")[0]
