"""Starts a program confined like an agent on this host; denied operations are tried before exec."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from agentbox.core.linux.landlock import PathRule
from agentbox.host.doctor.check_context import CheckContext
from agentbox.host.doctor.check_result import CheckResult
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.errors import SpawnFailed
from agentbox.sandbox.launcher.client import LauncherClient
from agentbox.sandbox.spec import Launch

NAME = "confinement"
TITLE = "confinement works on this host"
_SYSTEM_RULES: Final = tuple(
    PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/nix/store", "/proc")
)
_OPTIONAL: Final = ("filesystem", "signals")  # reported by the landlock check


def run_check(_host: CheckContext) -> Iterator[CheckResult]:
    try:
        refusals = asyncio.run(_try_confinement())
    except SpawnFailed as error:
        yield CheckResult(
            check=NAME,
            state="bad",
            message=f"cannot start an agent: {error.message} ({error.stage})",
            advice="See the results of kernel, landlock and seccomp.",
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
        advice="Run `agentbox doctor --attack` for the complete suite in a box."
        if not allowed
        else "Use another kernel: this one does not confine agents.",
    )


async def _try_confinement() -> Mapping[str, bool]:
    """Operation -> whether it was denied to a confined process. Raises SpawnFailed."""
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
