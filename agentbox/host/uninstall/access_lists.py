"""The access lists that `up --project` set on directories of the operator."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from agentbox.host.engines.command import run
from agentbox.host.engines.process.privilege_drop import BOX_UID
from agentbox.host.engines.workspace_permissions import revoke_access
from agentbox.host.uninstall.files import is_plain_path
from agentbox.host.uninstall.inventory import Item
from agentbox.host.uninstall.removal import Kept, Removal


def access_removals(names: Iterable[str]) -> Iterator[Removal | Kept]:
    """Only where the box's user has an entry: a line was written before the act, and may be
    damaged."""
    for name in names:
        if reason := _doubt(name):
            yield Kept(kind="access list", name=name, reason=reason, foreign=True)
        elif Path(name).is_dir() and _has_entries(name):
            yield Removal(
                kind="access list",
                name=name,
                remove=partial(revoke_access, Path(name)),
                items=(Item("access-list", name),),
            )


def _doubt(name: str) -> str:
    """Why a directory cannot be one of `up --project`, which notes resolved paths; "" if it can."""
    if not is_plain_path(name):
        return "it is not the path of a directory"
    if Path(name).resolve() != Path(name):
        return "its path leads through a link"
    if Path(name).is_dir() and shutil.which("getfacl") is None:
        return "getfacl is not installed, so its access list cannot be read"
    return ""


def _has_entries(name: str) -> bool:
    output = run(
        ["getfacl", "--numeric", "--absolute-names", "--omit-header", "--", name],
        doing=f"read the access list of {name}",
    )
    return f"default:user:{BOX_UID}:" in output
