"""plan -> the arguments of `podman run`: the same profile as compose, for an engine without
compose.
"""

import json
from pathlib import Path

from agentbox.core.paths import Paths
from agentbox.plan.merge import ContainerProfile, effective_profile
from agentbox.plan.model import Plan, VolumePlan
from agentbox.plan.names import WORKSPACE
from agentbox.plan.network import healthcheck
from agentbox.plan.render.compose import format_size, published_ports, tmpfs_option
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.options import (
    IMAGE_LABEL,
    RenderOptions,
    container_environment,
    image_tag,
    labels,
    passed_variables,
)

_BOX = Paths()
_CDI = {"nvidia": "nvidia.com/gpu"}


def podman_run(
    plan: Plan, options: RenderOptions, directory: Path, *, rootless: bool
) -> tuple[str, ...]:
    """`directory` has the rendered files (manifest, seccomp, secrets). Rootless podman maps the
    caller to uid 1000; root's podman does not support that option and does not need it, but its
    default network is shared: the box gets a network of its own name. Raises RenderError as
    `Options.check` does, and for a driver unknown to podman.
    """
    options.check(plan)
    image = options.image_ref or image_tag(plan)
    return (
        "podman",
        "run",
        "--detach",
        *_identity(plan, rootless),
        *_confinement(plan, directory),
        *_limits(plan),
        *_mounts(plan, options, directory),
        *([] if rootless else [f"--network={plan.name}"]),
        *_runtime_options(plan, options, image),
        image,
    )


def _identity(plan: Plan, rootless: bool) -> list[str]:
    userns = ["--userns=keep-id:uid=1000,gid=1000"] if rootless else []
    return [
        f"--name={plan.name}",
        f"--hostname={plan.name}",
        *userns,
        "--restart=on-failure:5",
        "--pull=never",
    ]


def _confinement(plan: Plan, directory: Path) -> list[str]:
    profile = effective_profile(plan)
    return [
        f"--user={profile.user}",
        "--read-only",
        "--read-only-tmpfs=false",
        *(f"--cap-drop={name}" for name in profile.cap_drop),
        *(f"--cap-add={name}" for name in profile.cap_add),
        "--security-opt=no-new-privileges",
        f"--security-opt=seccomp={directory}/seccomp/{profile.seccomp}.json",
        "--ipc=private",
        *(f"--device={path}" for path in (*profile.devices, *_cdi_devices(profile))),
        *(f"--group-add={name}" for name in profile.group_add),
        *([f"--runtime={profile.runtime}"] if profile.runtime else []),
        *(f"--tmpfs={tmpfs_option(row)}" for row in profile.tmpfs),
    ]


def _cdi_devices(profile: ContainerProfile) -> list[str]:
    """CDI names, by which podman requests devices of a driver."""
    names: list[str] = []
    for row in profile.device_requests:
        if row.driver not in _CDI:
            raise RenderError(
                f"cannot render devices of driver {row.driver} for podman",
                f"known: {', '.join(_CDI)}",
            )
        names += [
            f"{_CDI[row.driver]}={name}"
            for name in (["all"] if row.count == -1 else range(row.count))
        ]
    return names


def _limits(plan: Plan) -> list[str]:
    resources = plan.resources
    return [
        f"--cpus={resources.cpus}",
        f"--memory={format_size(resources.memory)}",
        f"--memory-swap={format_size(resources.memory)}",
        f"--pids-limit={resources.pids}",
        "--shm-size=64m",
        f"--stop-timeout={resources.stop_seconds}",
        "--stop-signal=SIGTERM",
        "--ulimit=core=0:0",
        f"--ulimit=nofile={resources.nofile}:{resources.nofile}",
    ]


def _mounts(plan: Plan, options: RenderOptions, directory: Path) -> list[str]:
    return [
        f"--mount=type=bind,source={directory}/agentbox.toml,target={_BOX.manifest},readonly",
        *(_volume(plan, row, options) for row in effective_profile(plan).volumes),
        *(
            f"--mount=type=bind,source={directory}/secrets/{name},"
            f"target={_BOX.mounted_secrets / name},readonly"
            for name in plan.secrets
        ),
    ]


def _volume(plan: Plan, row: VolumePlan, options: RenderOptions) -> str:
    readonly = ",readonly" if row.read_only else ""
    if row.source == WORKSPACE and options.project is not None:
        return f"--mount=type=bind,source={options.project},target={row.target}"
    if row.source.startswith("/"):
        return f"--mount=type=bind,source={row.source},target={row.target}{readonly}"
    return f"--mount=type=volume,source={plan.name}-{row.source},target={row.target}{readonly}"


def _runtime_options(plan: Plan, options: RenderOptions, image: str) -> list[str]:
    check, rendered = healthcheck(plan), container_environment(plan, options, image)
    return [
        *(f"--env={name}={value}" for name, value in rendered.items()),
        *(f"--env={name}" for name in passed_variables(plan, *rendered)),
        *(f"--publish={text}" for text in published_ports(plan)),
        *(
            f"--label={name}={value}"
            for name, value in {**labels(plan), IMAGE_LABEL: image}.items()
        ),
        f"--health-cmd={json.dumps(['CMD', *check.argv])}",
        f"--health-interval={check.interval}s",
        f"--health-timeout={check.timeout}s",
        f"--health-retries={check.retries}",
        f"--health-start-period={check.start_period}s",
        "--log-driver=k8s-file",
        "--log-opt=max-size=10m",
    ]
