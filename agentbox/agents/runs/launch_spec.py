"""Builds the launch of an agent: confinement, limits, directory, environment."""

import os
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from agentbox.agents.config import HostConfig
from agentbox.agents.registry.agent_record import AgentRecord
from agentbox.agents.review.branch import Branch
from agentbox.agents.runs import home, injected_env
from agentbox.agents.runs.confinement import (
    PathVariables,
    build_confinement,
    protected_dirs,
    resolve_in_box,
    resolve_program,
    workspace_path,
)
from agentbox.agents.runs.skill_links import EVERY_FOLDER, SKILL_FOLDERS, link_skills
from agentbox.core.linux.path_opener import Boundary, OpenDenied, open_directory
from agentbox.core.slot_errors import SpawnError
from agentbox.policy.rights import gateway_environment
from agentbox.sandbox.launcher.orphans import MARK
from agentbox.sandbox.spec import Launch

if TYPE_CHECKING:
    from agentbox.manifest.features.presets import Preset

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"


def build_launch(
    entry: AgentRecord, config: HostConfig, mark: str, token: str, branch: Branch | None = None
) -> Launch:
    """The launch for the sandbox. `token` is the bearer token of this generation; `branch` replaces
    the workspace. Creates the private directories. Raises SpawnError (stage home, profile, secrets,
    confinement)."""
    directory = resolve_in_box(config.paths, home.agent_dir(config.paths, entry.agent_id))
    try:
        home_dir, temp = home.create(directory)
        _write_preset_settings(entry, config, home_dir)
        folders = SKILL_FOLDERS.get(entry.grant_set.preset or "all", EVERY_FOLDER)
        link_skills(home_dir, config.paths.skills, _skills(entry, config), folders)
        workspace = workspace_path(entry, config) if branch is None else branch.work
        os.close(
            open_directory(
                str(workspace),
                Boundary(
                    protected=protected_dirs(config.paths),
                    exempt=(str(directory), *((str(branch.work),) if branch else ())),
                ),
            )
        )
    except OpenDenied as error:
        raise SpawnError(
            f"cannot start {entry.spec.name}: {error.strerror}", stage="confinement"
        ) from error
    except OSError as error:
        raise SpawnError(
            f"cannot create the directories of {entry.spec.name}: {error.strerror}", stage="home"
        ) from error
    limits, env, cwd = (
        entry.limits,
        {
            **_environment(entry, config, home_dir, temp, mark, token),
            "AGENTBOX_WORKSPACE": str(workspace),
        },
        str(cwd_of(entry, config, workspace, entry.spec.cwd)),
    )
    path_bindings = PathVariables(
        workspace=workspace,
        private=(home_dir, temp),
        program=resolve_program(entry.spec.argv[0], cwd, env, config) if entry.spec.argv else "",
        objects=branch.objects if branch else (),
    )
    return Launch(
        argv=entry.spec.argv,
        env=env,
        cwd=cwd,
        confinement=build_confinement(entry, config, path_bindings),
        roots=(str(workspace), str(directory)),
        memory=limits.memory or 0,
        cpu=limits.cpu or 0,
        pids=limits.pids or 0,
        fds=limits.fds or 0,
        box_tasks=config.box_tasks,
        box_memory=config.box_memory,
        file_size=limits.branch_disk or 0,
        wall_seconds=limits.wall_seconds or 0,
        grace_seconds=config.grace_seconds,
        private=str(directory),
        tmp=limits.tmp or 0,
        branch_disk=_disk_capacity(limits.branch_disk, branch),
    )


def _preset(entry: AgentRecord) -> "Preset | None":
    """The settings of its CLI, if it has a preset."""
    if not entry.grant_set.preset:
        return None
    from agentbox.manifest.features.presets import presets  # a box without presets reads none

    return presets()[entry.grant_set.preset]


def _write_preset_settings(entry: AgentRecord, config: HostConfig, home_dir: Path) -> None:
    """Raises OSError."""
    if preset := _preset(entry):
        from agentbox.agents.runs.preset_settings import render_settings, write_settings

        gateway = gateway_environment.gateway_url(config.gateway_port)
        model = gateway_environment.model_url(config.gateway_port, entry.grant_set.provider)
        write_settings(home_dir, render_settings(preset, gateway=gateway, model=model))


def _skills(entry: AgentRecord, config: HostConfig) -> list[str]:
    """The names of the skills that it is told of."""
    return [row.name for row in config.skills.selected(entry.grant_set.skills)]


def _disk_capacity(limit: int | None, branch: Branch | None) -> int:
    """Size limit of the branch: the configured limit applies to what the agent adds to the copy."""
    return limit + (branch.size if branch else 0) if limit else 0


def _environment(
    entry: AgentRecord, config: HostConfig, home_dir: Path, temp: Path, mark: str, token: str
) -> dict[str, str]:
    """`spec.env` over the variables of the features and a fixed list; variables that identify the
    agent cannot be overridden."""
    fixed = {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", "HOME": str(home_dir), "TMPDIR": str(temp)}
    preset = _preset(entry)
    return {
        **config.feature_env,
        **gateway_environment.authority_environment(config.paths.all_authorities),
        **(preset.env if preset else {}),
        **fixed,
        **injected_env.build_variables(entry, time.time()),
        **injected_env.write_secrets(entry, config.paths, temp, time.time()),
        **gateway_environment.agent_environment(
            entry.grant_set,
            token,
            config.gateway_port,
            {name: provider.kind for name, provider in config.providers.items()},
        ),
        "AGENTBOX_AGENT_ID": entry.agent_id,
        MARK: f"{mark}:{entry.agent_id}",
    }


def cwd_of(entry: AgentRecord, config: HostConfig, workspace: Path, requested: str) -> Path:
    """A relative path is relative to `workspace`. An absolute path is a path of the box; one inside
    the shared workspace is mapped to the agent's copy. The sandbox checks where it leads."""
    shared = config.paths.resolve(entry.grant_set.workspace_dir)
    if not PurePosixPath(requested).is_absolute():
        return workspace / requested
    requested_path = Path(requested)
    path = (
        requested_path
        if requested_path.is_relative_to(config.paths.prefix)
        else config.paths.resolve(requested)
    )
    return workspace / path.relative_to(shared) if path.is_relative_to(shared) else path
