"""Grants of the argument list of `podman run`."""

from collections.abc import Mapping

from agentbox.core.paths import Paths
from agentbox.host.rendered_grants.model import Grants, Mount, UnknownGrantError, only
from agentbox.host.rendered_grants.words import (
    capabilities,
    group_number,
    published,
    restarts,
    security_options,
    size,
    tmpfs,
)

_BOX = Paths()
_HARMLESS = (
    "detach", "name", "hostname", "pull", "stop-timeout", "stop-signal", "label", "health-cmd", "health-interval",
    "health-timeout", "health-retries", "health-start-period", "log-driver", "log-opt",
)  # fmt: skip
_READ = (
    "userns", "restart", "user", "read-only", "read-only-tmpfs", "cap-drop", "cap-add", "security-opt", "ipc", "device",
    "group-add", "runtime", "tmpfs", "cpus", "memory", "memory-swap", "pids-limit", "shm-size", "ulimit", "mount",
    "network", "env", "publish", "pid", "uts", "privileged",
)  # fmt: skip
_KEEP_ID = "keep-id:uid=1000,gid=1000"
_NVIDIA = "nvidia.com/gpu="
_FLAGS = frozenset(["write", "exec", "suid", "dev"])


class _Words:
    """The flags of an argument list by name."""

    def __init__(self, argv: list[str]) -> None:
        if argv[:2] != ["podman", "run"] or argv[-1].startswith("--"):
            raise UnknownGrantError("cannot read the arguments: they are not those of podman run", "")
        self.rows = [word.removeprefix("--").partition("=")[::2] for word in argv[2:-1] if word.startswith("--")]
        if len(self.rows) != len(argv) - 3:
            raise UnknownGrantError("cannot read the arguments: a word is no --flag", "")
        only("podman run", (name for name, _ in self.rows), (*_HARMLESS, *_READ))

    def all(self, name: str) -> list[str]:
        return [value for flag, value in self.rows if flag == name]

    def one(self, name: str, default: str = "") -> str:
        """The last one counts, as for podman."""
        return (self.all(name) or [default])[-1]

    def on(self, name: str) -> bool:
        return name in {flag for flag, _ in self.rows} and self.one(name) in ("", "true")


def of_podman(files: Mapping[str, bytes]) -> Grants:
    """`podman-run.txt` holds one word a line; paths in it are relative to the rendered folder."""
    words = _Words(files["podman-run.txt"].decode().splitlines())
    escalation, seccomp = security_options(words.all("security-opt"), files)
    name = words.one("name")
    return Grants(
        user=words.one("user"),
        capabilities=capabilities(words.all("cap-add"), words.all("cap-drop")),
        escalation=escalation,
        privileged=words.on("privileged"),
        # Without the second word podman mounts writable memory of its own over a read-only root.
        root_writable=not words.on("read-only") or words.one("read-only-tmpfs") != "false",
        seccomp=seccomp,
        mounts=(*(tmpfs(row) for row in words.all("tmpfs")), *(_mount(row, name) for row in words.all("mount"))),
        devices=frozenset(row.partition(":")[0] for row in words.all("device") if not row.startswith(_NVIDIA)),
        requests=_requests(words),
        groups=frozenset(group_number(row) for row in words.all("group-add")),
        ports=frozenset(published(row) for row in words.all("publish")),
        environment=frozenset(row.partition("=")[0] for row in words.all("env")),
        secrets=frozenset(source.removeprefix("secret:") for source in _secrets(words, name)),
        host_namespaces=_namespaces(words),
        shared_network=words.one("userns") != _KEEP_ID and words.one("network") != name,
        runtime=words.one("runtime"),
        limits=_limits(words),
    )


def _requests(words: _Words) -> dict[str, float]:
    """Devices by their names in the vendor's CDI file: `all`, or one by one."""
    names = [row.removeprefix(_NVIDIA) for row in words.all("device") if row.startswith(_NVIDIA)]
    return {"nvidia": float("inf") if "all" in names else len(names)} if names else {}


def _namespaces(words: _Words) -> frozenset[str]:
    found = {kind for kind in ("ipc", "pid", "uts") if words.one(kind, "private") != "private"}
    if words.one("userns", _KEEP_ID) != _KEEP_ID:
        found.add("user")
    if words.one("network") == "host":
        found.add("network")
    return frozenset(found)


def _limits(words: _Words) -> dict[str, float]:
    sizes = {"memory": "memory", "swap": "memory-swap", "shm": "shm-size"}
    found = {name: size(words.one(flag)) for name, flag in sizes.items() if words.all(flag)}
    plain = {"cpus": "cpus", "pids": "pids-limit"}
    found |= {name: float(words.one(flag)) for name, flag in plain.items() if words.all(flag)}
    for row in words.all("ulimit"):
        name, _, value = row.partition("=")
        only("ulimit", [name], ("core", "nofile"))
        found[name] = max(int(number) for number in value.split(":"))
    return {**found, "restarts": restarts(words.one("restart", "no"))}


def _secrets(words: _Words, name: str) -> list[str]:
    found = (_mount(row, name).source for row in words.all("mount"))
    return [source for source in found if source.startswith("secret:")]


def _mount(text: str, name: str) -> Mount:
    found = dict(word.partition("=")[::2] for word in text.split(","))
    only("a mount", found, ("type", "source", "target", "readonly"))
    flags = _FLAGS - ({"write"} if "readonly" in found else set())
    return Mount(target=found["target"], source=_source(found, name), flags=flags)


def _source(found: Mapping[str, str], name: str) -> str:
    source, target = found["source"], found["target"]
    if found["type"] == "volume":
        return (
            f"volume:{source.removeprefix(name + '-')}" if source.startswith(f"{name}-") else f"foreign volume {source}"
        )
    if (source, target) == ("./agentbox.toml", str(_BOX.manifest)):
        return "manifest"
    kept = source.removeprefix("./secrets/")
    return f"secret:{kept}" if target == str(_BOX.mounted_secrets / kept) else f"host:{source}"
