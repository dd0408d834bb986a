"""Builds the kernel confinement of an agent from its grants and the paths of this box."""

import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.core.frozen import frozen
from agentbox.core.linux.landlock import PathRule
from agentbox.core.linux.path_opener import SYSTEM_DIRECTORIES, Boundary, Opener, resolve_root
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import SpawnError
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.rights.rights import to_policy
from agentbox.sandbox.compile import TOOLCHAIN, UnenforceableRule, compile_policy
from agentbox.sandbox.confinement import Confinement


@frozen
class PathVariables:
    """Paths that the variables of a policy stand for. `private`: directories of this agent alone;
    `program`: the program it runs, "" for none; `objects`: git object directories that its branch
    borrows from."""

    workspace: Path
    private: tuple[Path, ...] = ()
    program: str = ""
    objects: tuple[str, ...] = ()


def build_confinement(
    entry: AgentRecord, config: HostConfig, path_bindings: PathVariables
) -> Confinement:
    """Raises SpawnError (stage profile)."""
    paths = config.paths
    workspace, *private = (
        str(resolve_in_box(paths, directory))
        for directory in (path_bindings.workspace, *path_bindings.private)
    )
    bindings = {
        "$WORKSPACE": [workspace],
        "$TMP": private,
        "$TOOLCHAIN": [*TOOLCHAIN, str(resolve_in_box(paths, paths.app))],
        "$COMMAND": [path_bindings.program] if path_bindings.program else [],
    }
    agent_dirs = (
        [workspace] if Path(workspace).is_relative_to(resolve_in_box(paths, paths.branches)) else []
    )
    degradable = config.limits.allow_degraded
    spec, policy = entry.spec, to_policy(entry.grant_set.kernel_rights(time.time()))
    try:
        confinement = compile_policy(
            policy,
            bindings,
            closed=protected_dirs(paths),
            exempt=agent_dirs,
            allow_degraded=degradable,
            door=config.gateway_port,
            closed_ports=config.closed_ports,
            target_ports=config.target_ports,
            written=[
                str(resolve_in_box(paths, paths.resolve(root))) for root in config.writable_dirs
            ],
        )
    except (UnenforceableRule, PatternError) as error:
        raise SpawnError(f"cannot start {spec.name}: {error}", stage="profile") from error
    readable = [*path_bindings.objects]
    own = confinement.own
    if paths.all_authorities.exists():
        authorities = str(paths.authorities.resolve())
        readable, own = [*readable, authorities], (*own, authorities)
    return replace(
        confinement,
        grants=(*confinement.grants, *(PathRule(path, "rl") for path in readable)),
        own=own,
    )


def workspace_path(entry: AgentRecord, config: HostConfig) -> Path:
    """The directory that the agent works in or has a copy of."""
    return resolve_in_box(config.paths, config.paths.resolve(entry.grant_set.workspace_dir))


def resolve_in_box(paths: Paths, path: Path) -> Path:
    """Resolve the links that the box itself made (a project in place of its workspace). Components
    below them may have been written by agents and are left as they are: whoever opens the path must
    not follow links there."""
    return Path(resolve_root(str(path), (str(paths.prefix), str(paths.workspace))))


@cache
def protected_dirs(paths: Paths) -> tuple[str, ...]:
    """Directories of the control plane: state, sockets, tokens and secrets, logs. Links are
    resolved, so that a workspace above them is detected; cached, since no agent can write to these
    paths."""
    return tuple(
        str(directory.resolve()) for directory in (paths.state, paths.run.parent, paths.logs)
    )


def resolve_program(name: str, cwd: str, env: Mapping[str, str], config: HostConfig) -> str:
    """The path of the program that argv names. "" if it does not exist (the start will fail with
    that error) or if an agent may have made a link on the way: such a path gets no grant."""
    candidate = (
        str(Path(cwd) / name) if "/" in name else shutil.which(name, path=env.get("PATH", ""))
    )
    paths = config.paths
    writable_dirs = tuple(
        str(resolve_in_box(paths, paths.resolve(root))) for root in config.writable_dirs
    )
    trusted_dirs = (*SYSTEM_DIRECTORIES, str(resolve_in_box(paths, paths.app)))
    with (
        suppress(OSError),
        Opener(Boundary(link_roots=trusted_dirs, writable=writable_dirs)) as opener,
    ):
        return opener.open(str(resolve_in_box(paths, Path(candidate)))).path if candidate else ""
    return ""
