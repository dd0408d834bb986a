"""The records of an uninstallation: what is removed, what stays and why."""

from __future__ import annotations

from collections.abc import Callable

from agentbox.core.frozen import frozen
from agentbox.host.uninstall.inventory import Item


@frozen
class Removal:
    """One thing that is removed. `size` in bytes, 0 where it has none; `remove` raises
    AgentboxError if it fails, and does nothing if the thing is gone. `items` leave the inventory
    with it.
    """

    kind: str
    name: str
    remove: Callable[[], None]
    size: int = 0
    items: tuple[Item, ...] = ()


@frozen
class Kept:
    """One thing that stays, `size` in bytes, and the reason. `foreign`: agentbox did not make it,
    so the next call has nothing to do with it. `items` are noted, so that the next call knows it.
    """

    kind: str
    name: str
    reason: str
    size: int = 0
    foreign: bool = False
    items: tuple[Item, ...] = ()


@frozen
class LastStep:
    """What a shell removes when Python is no longer needed: packages that Python needs, and files.
    `empty` are directories that are removed if nothing is left in them.
    """

    packages: tuple[str, ...] = ()
    checkouts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()


@frozen
class UninstallPlan:
    """An uninstallation, in the order of its steps."""

    removals: tuple[Removal, ...]
    kept: tuple[Kept, ...]
    last: LastStep
    items: tuple[Item, ...]  # the inventory
