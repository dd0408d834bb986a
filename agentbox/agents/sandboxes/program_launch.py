"""Builds the launch of a program in a sandbox: that of the sandbox with the program, its directory
and its environment."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.runs import home
from agentbox.agents.runs.confinement import (
    PathVariables,
    build_confinement,
    resolve_in_box,
    resolve_program,
)
from agentbox.agents.runs.launch_spec import cwd_of
from agentbox.agents.runs.open_sandbox import OpenSandbox
from agentbox.policy.rights import gateway_environment
from agentbox.sandbox.spec import Launch

_PREFIX = "AGENTBOX_"


def program_launch(
    sandbox: OpenSandbox,
    entry: AgentRecord,
    config: HostConfig,
    argv: tuple[str, ...],
    cwd: str,
    env: Mapping[str, str],
) -> Launch:
    """Variables that identify the sandbox cannot be overridden. The program has the rights that the
    sandbox has now. Raises SpawnError (stage profile)."""
    shared = sandbox.launch
    directory = resolve_in_box(config.paths, home.agent_dir(config.paths, entry.agent_id))
    workspace = Path(shared.env["AGENTBOX_WORKSPACE"])
    fixed = gateway_environment.agent_environment(
        entry.grant_set, "", 0, {name: row.kind for name, row in config.providers.items()}
    )
    own = {
        name: value
        for name, value in env.items()
        if name not in fixed and not name.startswith(_PREFIX)
    }
    environment = {**shared.env, **own}
    path = str(cwd_of(entry, config, workspace, cwd))
    bindings = PathVariables(
        workspace=workspace,
        private=(directory / "home", directory / "tmp"),
        program=resolve_program(argv[0], path, environment, config),
        objects=sandbox.objects,
    )
    return replace(
        shared,
        argv=argv,
        cwd=path,
        env=environment,
        confinement=build_confinement(entry, config, bindings),
    )
