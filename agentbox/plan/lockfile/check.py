"""Checks that manifest and lock are for the same packages; otherwise the rendered files would
describe another image.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agentbox.plan.errors import LockMismatchError
from agentbox.plan.lockfile.model import Lock

_REMEDY = "run agentbox lock"


def check_lock(lock: Lock, image: Mapping[str, Any], features: Sequence[str], system: str) -> None:
    """Raises LockMismatchError naming the difference: source, suite, features or system. `image` is
    `[image]`.
    """
    if lock.source != image["source"]:
        raise _mismatch(f"it contains packages of {lock.source}, image.source is {image['source']}")
    if lock.source == "debian" and lock.suite != image["suite"]:
        raise _mismatch(f"it contains packages of {lock.suite}, image.suite is {image['suite']}")
    if changed := _feature_changes(set(lock.features), set(features)):
        raise _mismatch(f"it was made for other packages ({changed})")
    if system not in lock.systems:
        raise LockMismatchError(
            f"cannot plan for {system}: the lock covers {', '.join(lock.systems)}",
            "add it to image.systems and run agentbox lock",
        )


def _feature_changes(locked: set[str], requested: set[str]) -> str:
    changes = [f"feature {name} was added" for name in sorted(requested - locked)]
    changes += [f"feature {name} was removed" for name in sorted(locked - requested)]
    return ", ".join(changes)


def _mismatch(reason: str) -> LockMismatchError:
    return LockMismatchError(f"cannot plan from agentbox.lock: {reason}", _REMEDY)
