"""A trial on this very host: a program is started as every agent is, and tries what must be refused before it runs."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from agentbox.core.linux.landlock import PathRule
from agentbox.host.doctor.check_result import CheckResult
from agentbox.host.doctor.host import Host
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import LauncherClient
from agentbox.sandbox.spec import Launch

NAME = "confinement"
TITLE = "a process that is confined here is held"
_SYSTEM_RULES: Final = tuple(
    PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/nix/store", "/proc")
)
_OPTIONAL: Final = ("filesystem", "signals")  # what an old kernel lacks has a row of its own


def run_check(_host: Host) -> Iterator[CheckResult]:
    try:
        refusals = asyncio.run(_try_confinement())
    except SpawnFailed as error:
        yield CheckResult(
            check=NAME,
            state="bad",
            message=f"no agent can be started here: {error.message} ({error.stage})",
            advice="The rows of kernel, Landlock and seccomp say what is missing.",
        )
        return
    allowed = [name for name, refused in refusals.items() if not refused]
    yield CheckResult(
        check=NAME,
        state="bad" if allowed else "good",
        facts=dict(refusals),
        message=f"not refused: {', '.join(allowed)}"
        if allowed
        else f"refused: {', '.join(sorted(refusals))}",
        advice="`agentbox doctor --attack` tries the whole list in a box."
        if not allowed
        else "No box of this kernel holds its agents.",
    )


async def _try_confinement() -> Mapping[str, bool]:
    """What a confined process found refused. Raises SpawnFailed."""
    launcher = LauncherClient()
    confinement = Confinement(grants=_SYSTEM_RULES, allow_degraded=_OPTIONAL)
    try:
        agent = await launcher.spawn(
            Launch(
                argv=("true",),
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
                roots=("/",),
                confinement=confinement,
            )
        )
        agent.close_descriptors()
        await agent.ended
        refusals: Mapping[str, bool] = agent.started.measured["held"]
        return refusals
    finally:
        await launcher.close()
