"""Environment variables and secret files that an agent receives from the box."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.runs import home
from agentbox.box.supervision.secrets import read_secret
from agentbox.core import paths as settings
from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic import replace
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import SpawnError
from agentbox.policy.patterns.scopes import is_pattern
from agentbox.policy.rights.rights import find_allowing_right

SECRETS_VARIABLE: Final = "AGENTBOX_SECRETS"
_DIRECTORY: Final = "secrets"


def build_variables(entry: AgentRecord, now: float) -> dict[str, str]:
    """Variables of the box that its table passes through and those of its spec, as far as its
    policy permits."""
    box_variables = settings.environment()
    candidates = {
        name: box_variables[name] for name in entry.grant_set.env if name in box_variables
    } | dict(entry.spec.env)
    rights = entry.grant_set.kernel_rights(now)
    return {
        name: value
        for name, value in candidates.items()
        if _is_passed(entry, name) or find_allowing_right(rights, "env", "read", name)
    }


def write_secrets(entry: AgentRecord, paths: Paths, temp: Path, now: float) -> Mapping[str, str]:
    """Write each secret to `<temp>/secrets/<name>`, mode 0400, remove those no longer granted, and
    return the variable that names the directory. A secret with a count or a rate gets no file,
    since reads of a file cannot be counted; `secret.get` returns it. Raises SpawnError (stage
    secrets) for a secret that is not set, OSError."""
    active = {
        grant.right.patterns[0]: grant.is_metered
        for grant in entry.grant_set.secrets
        if not grant.has_ended(now)
    }
    if not entry.grant_set.secrets:
        return {}
    directory = temp / _DIRECTORY
    _recreate_directory(directory)
    for name, is_counted in active.items():
        value = _secret_value(entry, paths, name)
        (directory / name).unlink(missing_ok=True)
        if not is_counted:
            replace(directory / name, value.encode(), mode=0o400, durable=False)
    return {SECRETS_VARIABLE: str(directory)}


def remove_secret(paths: Paths, agent_id: str, name: str) -> None:
    """Remove the file without following links that the agent may have made in its directory. Does
    nothing if the file is missing. What the agent has read already stays known to it."""
    with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
        temp = _open(stack, home.agent_dir(paths, agent_id) / "tmp", None)
        os.unlink(name, dir_fd=_open(stack, _DIRECTORY, temp))


def _is_passed(entry: AgentRecord, name: str) -> bool:
    """True for a name in an ad hoc spec that no pattern can match."""
    return not entry.grant_set.agent and not is_pattern("env", name)


def _open(stack: contextlib.ExitStack, path: Path | str, parent_fd: int | None) -> int:
    descriptor = os.open(
        path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent_fd
    )
    stack.callback(os.close, descriptor)
    return descriptor


def _recreate_directory(directory: Path) -> None:
    """Recreated for each generation: an earlier one may have left a link in its place."""
    if directory.is_symlink() or (directory.exists() and not directory.is_dir()):
        directory.unlink()
    elif directory.exists():
        home.remove(directory)
    directory.mkdir(0o700)


def _secret_value(entry: AgentRecord, paths: Paths, name: str) -> str:
    try:
        secret = read_secret(paths, name)
    except AgentboxError as error:
        raise SpawnError(
            f"cannot start {entry.spec.name}: {error.message}", hint=error.hint, stage="secrets"
        ) from error
    if secret is None:
        raise SpawnError(
            f"cannot start {entry.spec.name}: the secret {name} is not set",
            hint=f"set {name} in the environment that starts the box, "
            f"or remove it from agents.{entry.grant_set.agent}.secrets",
            stage="secrets",
        )
    return secret[0]
