"""The grants of a plan: the maximum of every target."""

from agentbox.core.canonical import digest
from agentbox.core.paths import Paths
from agentbox.plan.merge import effective_profile
from agentbox.plan.model import Plan, TmpfsPlan, VolumePlan
from agentbox.plan.names import WORKSPACE
from agentbox.plan.render.options import RenderOptions, container_environment
from agentbox.plan.render.seccomp import seccomp_text
from support.rendered_grants.model import GrantedMount, Grants
from support.rendered_grants.parsing import group_number

_BOX = Paths()
_ALL = frozenset(["write", "exec", "suid", "dev"])
READ_ONLY = _ALL - {"write"}
_SHM = 64 << 20  # default of every engine
_RESTARTS = 5


def plan_grants(plan: Plan, options: RenderOptions | None = None) -> Grants:
    """Applies the rendering options: a project directory replaces the volume `workspace`, hooks add
    variables.
    """
    options = options or RenderOptions()
    profile, resources = effective_profile(plan), plan.resources
    return Grants(
        user=profile.user,
        capabilities=frozenset(profile.cap_add),
        escalation=not profile.no_new_privileges,
        privileged=profile.privileged,
        root_writable=not profile.read_only,
        seccomp=digest(seccomp_text(profile.seccomp).encode()),
        mounts=(
            GrantedMount(target=str(_BOX.manifest), source="manifest", flags=READ_ONLY),
            *(_tmpfs(row) for row in profile.tmpfs),
            *(_volume(row, options) for row in profile.volumes),
            *(_secret(name) for name in plan.secrets),
        ),
        devices=frozenset(profile.devices),
        requests={
            row.driver: float("inf") if row.count == -1 else row.count
            for row in profile.device_requests
        },
        groups=frozenset(group_number(name) for name in profile.group_add),
        ports=frozenset((port.publish, port.port) for port in plan.ports if port.publish),
        environment=frozenset([*container_environment(plan, options, ""), *plan.passed]),
        secrets=frozenset(plan.secrets),
        host_namespaces=frozenset(),
        shared_network=False,
        runtime=profile.runtime,
        limits={
            "memory": resources.memory,
            "swap": resources.memory,
            "cpus": resources.cpus,
            "pids": resources.pids,
            "nofile": resources.nofile,
            "core": 0,
            "shm": _SHM,
            "restarts": _RESTARTS,
        },
    )


def _tmpfs(row: TmpfsPlan) -> GrantedMount:
    flags = frozenset(["write", *(["exec"] if row.exec else [])])
    return GrantedMount(target=row.target, source="tmpfs", flags=flags, size=row.size)


def _volume(row: VolumePlan, options: RenderOptions) -> GrantedMount:
    source = f"host:{row.source}" if row.source.startswith("/") else f"volume:{row.source}"
    if row.source == WORKSPACE and options.project is not None:
        source = f"host:{options.project}"
    return GrantedMount(
        target=row.target, source=source, flags=READ_ONLY if row.read_only else _ALL
    )


def _secret(name: str) -> GrantedMount:
    return GrantedMount(
        target=str(_BOX.mounted_secrets / name), source=f"secret:{name}", flags=READ_ONLY
    )
