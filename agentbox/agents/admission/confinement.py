"""From the profile of a spec to what the kernel is told about that agent: where its places lie in this box."""

import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from agentbox.agents.config import HostConfig
from agentbox.agents.registry.entry import Entry
from agentbox.core.linux.landlock import Grant
from agentbox.core.linux.opening import SYSTEM, Boundary, Opener, settled
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import SpawnError
from agentbox.policy.patterns.base import PatternError
from agentbox.policy.rights.rights import as_policy
from agentbox.sandbox.compile import TOOLCHAIN, NotHeld, compile_policy
from agentbox.sandbox.confinement import Confinement


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the agent finds what its policy names. `private`: folders of this agent alone; `program`:
    what it runs, "" when there is none; `objects`: folders of git objects that its branch borrows from."""

    workspace: Path
    private: tuple[Path, ...] = ()
    program: str = ""
    objects: tuple[str, ...] = ()


def confinement_of(entry: Entry, config: HostConfig, places: Places) -> Confinement:
    """Raises SpawnError (stage profile)."""
    paths = config.paths
    workspace, *private = (str(in_box(paths, folder)) for folder in (places.workspace, *places.private))
    bindings = {
        "$WORKSPACE": [workspace], "$TMP": private,
        "$TOOLCHAIN": [*TOOLCHAIN, str(in_box(paths, paths.app))], "$COMMAND": [places.program] if places.program else [],
    }  # fmt: skip
    own = [workspace] if Path(workspace).is_relative_to(in_box(paths, paths.branches)) else []
    allowed = config.limits.get("allow_degraded", ())
    spec, held = entry.spec, as_policy(entry.holding.for_kernel(time.time()))
    try:
        found = compile_policy(
            held, bindings, closed=closed(paths), own=own, allow_degraded=allowed,
            door=config.gateway_port, closed_ports=config.closed_ports, target_ports=config.target_ports,
            written=[str(in_box(paths, paths.at(root))) for root in config.written],
        )  # fmt: skip
    except (NotHeld, PatternError) as error:
        raise SpawnError(f"cannot start {spec.name}: {error}", stage="profile") from error
    return replace(found, grants=(*found.grants, *(Grant(path, "rl") for path in places.objects)))


def workspace_of(entry: Entry, config: HostConfig) -> Path:
    """The folder that it works in, or has a copy of."""
    return in_box(config.paths, config.paths.at(entry.holding.workspace_dir))


def in_box(paths: Paths, place: Path) -> Path:
    """With the links that the box itself made (a project in place of its workspace) as the kernel names them. What lies
    below them agents may have written: it stays as it is, for whoever opens it to follow no link there."""
    return Path(settled(str(place), (str(paths.prefix), str(paths.workspace))))


@cache
def closed(paths: Paths) -> tuple[str, ...]:
    """The control plane's folders: state, sockets, tokens and secrets, logs. Where links lead, so that a workspace above
    them is seen; followed once, since no agent writes on the way."""
    return tuple(str(folder.resolve()) for folder in (paths.state, paths.run.parent, paths.logs))


def program_of(name: str, cwd: str, env: Mapping[str, str], config: HostConfig) -> str:
    """The path that a name in argv leads to; "" when nothing is there, as the start itself will say, and when a link leads
    there that an agent may have made: that grants nothing."""
    found = str(Path(cwd) / name) if "/" in name else shutil.which(name, path=env.get("PATH", ""))
    paths = config.paths
    written = tuple(str(in_box(paths, paths.at(root))) for root in config.written)
    linked = (*SYSTEM, str(in_box(paths, paths.app)))
    with suppress(OSError), Opener(Boundary(linked=linked, written=written)) as opener:
        return opener.open(str(in_box(paths, Path(found)))).path if found else ""
    return ""
