"""From the profile of a spec to what the kernel is told about that agent: where its places lie in this box."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentbox.adapters.errors import SpawnError
from agentbox.agents.config import HostConfig
from agentbox.agents.entry import Entry
from agentbox.grants.rights import as_policy
from agentbox.manifest.patterns import PatternError
from agentbox.sandbox.compile import TOOLCHAIN, NotHeld, compile_policy
from agentbox.sandbox.confine import Confinement
from agentbox.sandbox.landlock import Grant
from agentbox.settings import Paths


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the agent finds what its policy names. `private`: folders of this agent alone; `program`: what it runs, "" when
    there is none; `objects`: folders of git objects that its branch borrows from."""

    workspace: Path
    private: tuple[Path, ...] = ()
    program: str = ""
    objects: tuple[str, ...] = ()


def confinement_of(entry: Entry, config: HostConfig, places: Places) -> Confinement:
    """Raises SpawnError (stage profile)."""
    paths = config.paths
    workspace, private = str(places.workspace.resolve()), [str(folder.resolve()) for folder in places.private]
    bindings = {
        "$WORKSPACE": [workspace], "$TMP": private,
        "$TOOLCHAIN": [*TOOLCHAIN, str(paths.app)], "$COMMAND": [places.program] if places.program else [],
    }  # fmt: skip
    own = [workspace] if Path(workspace).is_relative_to(paths.branches.resolve()) else []
    allowed = config.limits.get("allow_degraded", ())
    spec, held = entry.spec, as_policy(entry.holding.for_kernel(time.time()))
    try:
        found = compile_policy(
            held, bindings, closed=closed(paths), own=own, allow_degraded=allowed,
            door=config.gateway_port, closed_ports=config.closed_ports,
        )  # fmt: skip
    except (NotHeld, PatternError) as error:
        raise SpawnError(f"cannot start {spec.name}: {error}", stage="profile") from error
    return replace(found, grants=(*found.grants, *(Grant(path, "rl") for path in places.objects)))


def workspace_of(entry: Entry, config: HostConfig) -> Path:
    """The folder that it works in."""
    return config.paths.at(entry.holding.workspace_dir)


def closed(paths: Paths) -> tuple[str, ...]:
    """The control plane's folders: state, sockets, tokens and secrets, logs. Where links lead, so that a workspace above
    them is seen."""
    return tuple(str(folder.resolve()) for folder in (paths.state, paths.run.parent, paths.logs))


def program_of(name: str, cwd: str, env: Mapping[str, str]) -> str:
    """The path that a name in argv leads to; "" when nothing is there, as the start itself will say."""
    found = str(Path(cwd) / name) if "/" in name else shutil.which(name, path=env.get("PATH", ""))
    return str(Path(found).resolve()) if found else ""
