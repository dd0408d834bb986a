"""From what a caller asks for to what may be started: profile, limits, folder, environment. Refuses with typed errors."""

import os
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import Any

from agentbox.agents.admission import injected_env
from agentbox.agents.admission.confinement import Places, closed, confinement_of, in_box, program_of, workspace_of
from agentbox.agents.config import HostConfig
from agentbox.agents.registry.entry import Entry
from agentbox.agents.review.branch import Branch
from agentbox.agents.runs import home
from agentbox.contracts.orchestrator import Limits
from agentbox.core.linux.opening import Boundary, Refused, open_folder
from agentbox.core.slot_errors import QuotaExceeded, SpawnError
from agentbox.policy.rights import environment
from agentbox.sandbox.launcher.leftovers import MARK
from agentbox.sandbox.spec import Launch

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"


def effective_limits(asked: Limits, most: Mapping[str, Any], *, once: bool, admin: bool) -> Limits:
    """Every field set: what the spec lowers, else what `most`, keys of `[limits]`, says. Raising one needs scope admin:
    QuotaExceeded."""
    wall = "run_wall_seconds" if once else "agent_wall_seconds"
    ceilings = {name: most.get(wall if name == "wall_seconds" else name) for name in _NAMES}
    found: dict[str, Any] = {}
    for name, ceiling in ceilings.items():
        value = getattr(asked, name)
        key = f"limits.{wall if name == 'wall_seconds' else name}"
        found[name] = ceiling if value is None else _lowered(name, value, ceiling, key, admin=admin)
    return Limits(**found)


def launch_of(entry: Entry, config: HostConfig, mark: str, token: str, branch: Branch | None = None) -> Launch:
    """What the sandbox is told; `token` is the bearer token of this life, `branch` where it works in place of the
    workspace. Makes the private folders. Raises SpawnError (stage home, profile, secrets, confinement)."""
    folder = in_box(config.paths, home.of_agent(config.paths, entry.agent_id))
    try:
        home_dir, temp = home.make(folder)
        workspace = workspace_of(entry, config) if branch is None else branch.work
        os.close(open_folder(str(workspace), Boundary(closed=closed(config.paths), own=(str(folder),))))
    except Refused as error:
        raise SpawnError(f"cannot start {entry.spec.name}: {error.strerror}", stage="confinement") from error
    except OSError as error:
        raise SpawnError(f"cannot make the folders of {entry.spec.name}: {error.strerror}", stage="home") from error
    limits, env, cwd = (
        entry.limits,
        {**_environment(entry, config, home_dir, temp, mark, token), "AGENTBOX_WORKSPACE": str(workspace)},
        str(_cwd(entry, config, workspace)),
    )
    program, objects = program_of(entry.spec.argv[0], cwd, env, config), branch.objects if branch else ()
    places = Places(workspace=workspace, private=(home_dir, temp), program=program, objects=objects)
    return Launch(
        argv=entry.spec.argv, env=env, cwd=cwd, confinement=confinement_of(entry, config, places),
        roots=(str(workspace), str(folder)), memory=limits.memory or 0, cpu=limits.cpu or 0, pids=limits.pids or 0,
        fds=limits.fds or 0, box_tasks=config.box_tasks, box_memory=config.box_memory,
        file_size=limits.branch_disk or 0, wall_seconds=limits.wall_seconds or 0, grace_seconds=config.grace_seconds,
        private=str(folder), tmp=limits.tmp or 0, branch_disk=_room(limits.branch_disk, branch),
    )  # fmt: skip


def _room(asked: int | None, branch: Branch | None) -> int:
    """What the branch may hold: the limit is on what the agent adds to the copy."""
    return asked + (branch.size if branch else 0) if asked else 0


def _environment(entry: Entry, config: HostConfig, home_dir: Path, temp: Path, mark: str, token: str) -> dict[str, str]:
    """`spec.env` over the features' and this short list; what names the agent cannot be overridden."""
    fixed = {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", "HOME": str(home_dir), "TMPDIR": str(temp)}
    return {
        **config.feature_env,
        **fixed,
        **injected_env.variables(entry, time.time()),
        **injected_env.give_secrets(entry, config.paths, temp, time.time()),
        **environment.of_agent(entry.holding, token, config.gateway_port, config.providers),
        "AGENTBOX_AGENT_ID": entry.agent_id,
        MARK: f"{mark}:{entry.agent_id}",
    }


def _cwd(entry: Entry, config: HostConfig, workspace: Path) -> Path:
    """Relative to `workspace`, where it works; an absolute path is a path of the box, and one in the workspace means the same
    place of the agent's. The sandbox checks where it really leads."""
    asked, shared = entry.spec.cwd, config.paths.at(entry.holding.workspace_dir)
    if not PurePosixPath(asked).is_absolute():
        return workspace / asked
    inside = Path(asked)
    found = inside if inside.is_relative_to(config.paths.prefix) else config.paths.at(asked)
    return workspace / found.relative_to(shared) if found.is_relative_to(shared) else found


_NAMES = tuple(field.name for field in fields(Limits))


def _lowered(name: str, value: float, ceiling: float | None, key: str, *, admin: bool) -> float:
    endless = name == "wall_seconds"
    unbounded = endless and value == 0
    if ceiling and not admin and (value > ceiling or unbounded):
        raise QuotaExceeded(
            f"cannot raise {key} to {value:g}: the most is {ceiling:g}",
            hint="lower it, or ask as admin", limit=name, observed=value, cap=ceiling, config_path=key,
        )  # fmt: skip
    return value
