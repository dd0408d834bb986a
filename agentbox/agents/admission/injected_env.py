"""What an agent is handed beside its programs: variables of the box, and secrets as files that only it is shown."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentbox.agents.registry.entry import Entry
from agentbox.agents.runs import home
from agentbox.box.supervision.secrets import read_secret
from agentbox.core import paths as settings
from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic import replace
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import SpawnError
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.patterns.scopes import parse
from agentbox.policy.rights.rights import allowing

SECRETS_VARIABLE: Final = "AGENTBOX_SECRETS"
_FOLDER: Final = "secrets"


def variables(entry: Entry, now: float) -> dict[str, str]:
    """Those of the box that its table passes through and those of its spec, as far as its policy lets them."""
    box = settings.environment()
    found = {name: box[name] for name in entry.holding.env if name in box} | dict(entry.spec.env)
    rights = entry.holding.for_kernel(now)
    return {
        name: value for name, value in found.items() if _passes(entry, name) or allowing(rights, "env", "read", name)
    }


def give_secrets(entry: Entry, paths: Paths, temp: Path, now: float) -> Mapping[str, str]:
    """Writes each secret to `<temp>/secrets/<name>`, 0400, and takes away what is no longer granted; answers the variable
    that names the folder. One with a count or a rate has no file, which nobody counts: `secret.get` shows it. Raises SpawnError
    (stage secrets) for one that is unset, OSError."""
    held = {one.right.patterns[0]: one.counted for one in entry.holding.secrets if not one.over(now)}
    if not entry.holding.secrets:
        return {}
    folder = temp / _FOLDER
    _own_folder(folder)
    for name, counted in held.items():
        value = _secret(entry, paths, name)
        (folder / name).unlink(missing_ok=True)
        if not counted:
            replace(folder / name, value.encode(), mode=0o400, durable=False)
    return {SECRETS_VARIABLE: str(folder)}


def take_back(paths: Paths, agent_id: str, name: str) -> None:
    """Removes the file, beneath the agent's own folder wherever it may have put links. What the agent has read of it, it
    has read. Nothing happens where the file is gone."""
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
        temp = _open(opened, home.of_agent(paths, agent_id) / "tmp", None)
        os.unlink(name, dir_fd=_open(opened, _FOLDER, temp))


def is_variable(text: str) -> bool:
    """Whether the scope env has a pattern for that name."""
    try:
        parse("env", text)
    except PatternError:
        return False
    return True


def _passes(entry: Entry, name: str) -> bool:
    """A name of an ad hoc spec that no pattern can have."""
    return not entry.holding.agent and not is_variable(name)


def _open(opened: contextlib.ExitStack, path: Path | str, below: int | None) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=below)
    opened.callback(os.close, descriptor)
    return descriptor


def _own_folder(folder: Path) -> None:
    """Made anew for each life: an earlier one may have left a link in its place."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        folder.unlink()
    elif folder.exists():
        home.remove(folder)
    folder.mkdir(0o700)


def _secret(entry: Entry, paths: Paths, name: str) -> str:
    try:
        found = read_secret(paths, name)
    except AgentboxError as error:
        raise SpawnError(
            f"cannot start {entry.spec.name}: {error.message}", hint=error.hint, stage="secrets"
        ) from error
    if found is None:
        raise SpawnError(
            f"cannot start {entry.spec.name}: the secret {name} is not set",
            hint=f"set {name} where the box is started, or take it from agents.{entry.holding.agent}.secrets",
            stage="secrets",
        )  # fmt: skip
    return found[0]
