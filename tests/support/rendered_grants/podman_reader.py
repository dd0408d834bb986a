"""Grants of the argument list of `podman run`."""

from collections.abc import Mapping

from agentbox.core.paths import Paths
from support.rendered_grants.model import (
    GrantedMount,
    Grants,
    UnknownGrantError,
    require_known,
)
from support.rendered_grants.parsing import (
    granted_capabilities,
    group_number,
    parse_port,
    parse_restarts,
    parse_size,
    parse_tmpfs,
    security_options,
)

_BOX = Paths()
_HARMLESS = (
    "detach",
    "name",
    "hostname",
    "pull",
    "stop-timeout",
    "stop-signal",
    "label",
    "health-cmd",
    "health-interval",
    "health-timeout",
    "health-retries",
    "health-start-period",
    "log-driver",
    "log-opt",
)
_READ = (
    "userns",
    "restart",
    "user",
    "read-only",
    "read-only-tmpfs",
    "cap-drop",
    "cap-add",
    "security-opt",
    "ipc",
    "device",
    "group-add",
    "runtime",
    "tmpfs",
    "cpus",
    "memory",
    "memory-swap",
    "pids-limit",
    "shm-size",
    "ulimit",
    "mount",
    "network",
    "env",
    "publish",
    "pid",
    "uts",
    "privileged",
)
_KEEP_ID = "keep-id:uid=1000,gid=1000"
_NVIDIA = "nvidia.com/gpu="
_FLAGS = frozenset(["write", "exec", "suid", "dev"])


class _Flags:
    """The flags of an argument list by name."""

    def __init__(self, argv: list[str]) -> None:
        if argv[:2] != ["podman", "run"] or argv[-1].startswith("--"):
            raise UnknownGrantError("cannot read the arguments: not a podman run command", "")
        self.rows = [
            argument.removeprefix("--").partition("=")[::2]
            for argument in argv[2:-1]
            if argument.startswith("--")
        ]
        if len(self.rows) != len(argv) - 3:
            raise UnknownGrantError("cannot read the arguments: a word is not a --flag", "")
        require_known("podman run", (name for name, _ in self.rows), (*_HARMLESS, *_READ))

    def values(self, name: str) -> list[str]:
        return [value for flag, value in self.rows if flag == name]

    def last_value(self, name: str, default: str = "") -> str:
        """The last one counts, as for podman."""
        return (self.values(name) or [default])[-1]

    def is_set(self, name: str) -> bool:
        return name in {flag for flag, _ in self.rows} and self.last_value(name) in ("", "true")


def read_podman(files: Mapping[str, bytes]) -> Grants:
    """Read `podman-run.txt`, one word per line; its paths are relative to the rendered
    directory.
    """
    flags = _Flags(files["podman-run.txt"].decode().splitlines())
    escalation, seccomp = security_options(flags.values("security-opt"), files)
    name = flags.last_value("name")
    return Grants(
        user=flags.last_value("user"),
        capabilities=granted_capabilities(flags.values("cap-add"), flags.values("cap-drop")),
        escalation=escalation,
        privileged=flags.is_set("privileged"),
        # Without read-only-tmpfs=false podman mounts writable tmpfs over a read-only root.
        root_writable=not flags.is_set("read-only")
        or flags.last_value("read-only-tmpfs") != "false",
        seccomp=seccomp,
        mounts=(
            *(parse_tmpfs(row) for row in flags.values("tmpfs")),
            *(_mount(row, name) for row in flags.values("mount")),
        ),
        devices=frozenset(
            row.partition(":")[0] for row in flags.values("device") if not row.startswith(_NVIDIA)
        ),
        requests=_requests(flags),
        groups=frozenset(group_number(row) for row in flags.values("group-add")),
        ports=frozenset(parse_port(row) for row in flags.values("publish")),
        environment=frozenset(row.partition("=")[0] for row in flags.values("env")),
        secrets=frozenset(source.removeprefix("secret:") for source in _secrets(flags, name)),
        host_namespaces=_namespaces(flags),
        shared_network=flags.last_value("userns") != _KEEP_ID
        and flags.last_value("network") != name,
        runtime=flags.last_value("runtime"),
        limits=_limits(flags),
    )


def _requests(flags: _Flags) -> dict[str, float]:
    """Parse device names of the vendor's CDI file: `all`, or individual ones."""
    names = [row.removeprefix(_NVIDIA) for row in flags.values("device") if row.startswith(_NVIDIA)]
    return {"nvidia": float("inf") if "all" in names else len(names)} if names else {}


def _namespaces(flags: _Flags) -> frozenset[str]:
    namespaces = {
        kind for kind in ("ipc", "pid", "uts") if flags.last_value(kind, "private") != "private"
    }
    if flags.last_value("userns", _KEEP_ID) != _KEEP_ID:
        namespaces.add("user")
    if flags.last_value("network") == "host":
        namespaces.add("network")
    return frozenset(namespaces)


def _limits(flags: _Flags) -> dict[str, float]:
    sizes = {"memory": "memory", "swap": "memory-swap", "shm": "shm-size"}
    limits = {
        name: parse_size(flags.last_value(flag))
        for name, flag in sizes.items()
        if flags.values(flag)
    }
    numbers = {"cpus": "cpus", "pids": "pids-limit"}
    limits |= {
        name: float(flags.last_value(flag)) for name, flag in numbers.items() if flags.values(flag)
    }
    for row in flags.values("ulimit"):
        name, _, value = row.partition("=")
        require_known("ulimit", [name], ("core", "nofile"))
        limits[name] = max(int(number) for number in value.split(":"))
    return {**limits, "restarts": parse_restarts(flags.last_value("restart", "no"))}


def _secrets(flags: _Flags, name: str) -> list[str]:
    sources = (_mount(row, name).source for row in flags.values("mount"))
    return [source for source in sources if source.startswith("secret:")]


def _mount(text: str, name: str) -> GrantedMount:
    options = dict(part.partition("=")[::2] for part in text.split(","))
    require_known("a mount", options, ("type", "source", "target", "readonly"))
    flags = _FLAGS - ({"write"} if "readonly" in options else set())
    return GrantedMount(target=options["target"], source=_source(options, name), flags=flags)


def _source(options: Mapping[str, str], name: str) -> str:
    source, target = options["source"], options["target"]
    if options["type"] == "volume":
        return (
            f"volume:{source.removeprefix(name + '-')}"
            if source.startswith(f"{name}-")
            else f"foreign volume {source}"
        )
    if (source, target) == ("./agentbox.toml", str(_BOX.manifest)):
        return "manifest"
    secret = source.removeprefix("./secrets/")
    return f"secret:{secret}" if target == str(_BOX.mounted_secrets / secret) else f"host:{source}"
