"""Builds the launch of a program in a sandbox: that of the sandbox with the program, its directory
and its environment."""

import time
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
from agentbox.sandbox.confinement import Confinement
from agentbox.sandbox.spec import Launch

_PREFIX = "AGENTBOX_"
_MAX_PROGRAMS = 64


class ProgramConfinements:
    """Confinements by program. The policy is compiled again once the rights of the sandbox have
    changed."""

    def __init__(self) -> None:
        self._rights: tuple[object, ...] = ()
        self._by_program: dict[str, Confinement] = {}

    def find(self, entry: AgentRecord, config: HostConfig, bindings: PathVariables) -> Confinement:
        """Raises SpawnError (stage profile)."""
        rights = tuple(entry.grant_set.kernel_rights(time.time()))
        if rights != self._rights or len(self._by_program) >= _MAX_PROGRAMS:
            self._rights, self._by_program = rights, {}
        if (found := self._by_program.get(bindings.program)) is None:
            found = self._by_program[bindings.program] = build_confinement(entry, config, bindings)
        return found


def program_launch(
    sandbox: OpenSandbox,
    confinements: ProgramConfinements,
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
        confinement=confinements.find(entry, config, bindings),
    )
