"""A trial on this very host: a program is started as every agent is, and tries what must be refused before it runs."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from agentbox.core.linux.landlock import Grant
from agentbox.host.doctor.host import Host
from agentbox.host.doctor.row import Row
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import Launcher
from agentbox.sandbox.spec import Launch

NAME = "confinement"
TITLE = "a process that is confined here is held"
_SYSTEM: Final = tuple(Grant(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/nix/store", "/proc"))
_OPTIONAL: Final = ("filesystem", "signals")  # what an old kernel lacks has a row of its own


def look(_host: Host) -> Iterator[Row]:
    try:
        held = asyncio.run(_tried())
    except SpawnFailed as error:
        yield Row(check=NAME, state="bad", said=f"no agent can be started here: {error.message} ({error.stage})",
                  advice="The rows of kernel, Landlock and seccomp say what is missing.")  # fmt: skip
        return
    lacking = [name for name, fine in held.items() if not fine]
    yield Row(
        check=NAME, state="bad" if lacking else "good", facts=dict(held),
        said=f"not refused: {', '.join(lacking)}" if lacking else f"refused: {', '.join(sorted(held))}",
        advice="`agentbox doctor --attack` tries the whole list in a box." if not lacking else "No box of this kernel holds its agents.",
    )  # fmt: skip


async def _tried() -> Mapping[str, bool]:
    """What a confined process found refused. Raises SpawnFailed."""
    launcher = Launcher()
    confinement = Confinement(grants=_SYSTEM, allow_degraded=_OPTIONAL)
    try:
        agent = await launcher.spawn(
            Launch(argv=("true",), env={"PATH": "/usr/bin:/bin"}, cwd="/", roots=("/",), confinement=confinement)
        )
        agent.close_descriptors()
        await agent.ended
        held: Mapping[str, bool] = agent.started.measured["held"]
        return held
    finally:
        await launcher.close()
