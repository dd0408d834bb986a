"""RC-015: the engine's description of the container equals the baseline, row by row. Column D."""

import json
from collections.abc import Callable
from typing import Any

from harness.container import NETWORK, DockerBox

from agentbox.core.paths import CHECKOUT

SIZES = {"/run": "64M", "/var/log/supervisor": "64M", "/var/run": "16M"}


def engine_says_baseline(box: DockerBox) -> None:
    """The predicate, of a container that exists."""
    found = box.inspect()
    host = found["HostConfig"]
    _user_and_rights(found["Config"], host)
    _limits(box, host)
    _tmpfs(box, host["Tmpfs"])
    _namespaces_and_mounts(box, found)
    assert host["LogConfig"] == {
        "Type": "json-file",
        "Config": {"max-file": "3", "max-size": "10m"},
    }


def _user_and_rights(config: dict[str, Any], host: dict[str, Any]) -> None:
    assert config["User"] == "1000:1000", "user"
    assert host["ReadonlyRootfs"] is True, "read_only"
    assert host["CapDrop"] == ["ALL"], "cap_drop"
    assert not host["CapAdd"], "cap_add"
    assert host["Privileged"] is False, "privileged"
    options = host["SecurityOpt"] or []
    assert "no-new-privileges:true" in options, "no-new-privileges"
    seccomp = [
        option.removeprefix("seccomp=") for option in options if option.startswith("seccomp=")
    ]
    assert seccomp, "no seccomp list"
    assert json.loads(seccomp[0]) == json.loads(
        (CHECKOUT / "config/seccomp/agentbox.json").read_text()
    )


def _limits(box: DockerBox, host: dict[str, Any]) -> None:
    resources = box.plan.resources
    assert (host["Memory"], host["MemorySwap"]) == (resources.memory, resources.memory), (
        "memory limits"
    )
    assert host["NanoCpus"] == int(resources.cpus * 1e9), "cpus"
    assert host["PidsLimit"] == resources.pids, "pids_limit"
    limits = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in host["Ulimits"] or []}
    assert limits == {"nofile": (resources.nofile,) * 2, "core": (0, 0)}, "ulimits"
    assert host["ShmSize"] == 64 << 20, "shm_size"


def _tmpfs(box: DockerBox, found: dict[str, str] | None) -> None:
    wanted = {
        **SIZES,
        "/tmp": _mib(box.plan.resources.tmp_size),
        "/var/log": _mib(box.plan.resources.log_size),
    }
    assert set(found or {}) == set(wanted), "tmpfs"
    for target, words in (found or {}).items():
        mode = "1777" if target == "/tmp" else "755"
        sealed = {
            "uid=1000",
            "gid=1000",
            "noexec",
            "nosuid",
            "nodev",
            f"mode={mode}",
            f"size={wanted[target]}",
        }
        assert set(words.split(",")) == sealed, f"tmpfs {target}"


def _mib(size: int) -> str:
    return f"{size >> 20}M"


def _namespaces_and_mounts(box: DockerBox, found: dict[str, Any]) -> None:
    host = found["HostConfig"]
    modes = [host[name] for name in ("IpcMode", "PidMode", "UTSMode", "UsernsMode")]
    assert modes == ["private", "", "", ""], "namespaces"
    assert not host["Devices"], "devices"
    assert host["NetworkMode"] == NETWORK, "network"
    published = [
        binding for bindings in (host["PortBindings"] or {}).values() for binding in bindings
    ]
    assert len(published) == 2, "ports"
    assert {binding["HostIp"] for binding in published} == {"127.0.0.1"}, "published address"
    mounts = {mount["Destination"]: mount for mount in found["Mounts"]}
    binds = {f"/run/secrets/{name}" for name in box.plan.secrets} | {"/etc/agentbox.toml"}
    volumes = {
        "/var/lib/agentbox",
        "/var/lib/agentbox/backups",
        "/var/lib/agentbox/branches",
        "/workspace",
    }
    assert set(mounts) == binds | volumes, "mounts"
    assert {target for target, mount in mounts.items() if mount["Type"] == "bind"} == binds, "binds"
    assert [target for target in binds if mounts[target]["RW"]] == [], "writable binds"
    assert not any("docker.sock" in mount["Source"] for mount in mounts.values())


def test_rc_015(running_docker: DockerBox) -> None:
    """User, root, capabilities, privileges, seccomp text, five tmpfs with owner, limits, log, mounts, addresses."""
    assert running_docker.wait_ready()["ready"] is True
    engine_says_baseline(running_docker)


def test_rc_015_restart_policy(docker_box: Callable[..., DockerBox]) -> None:
    """Boxes of this suite never restart by themselves; without that override, on failure, five times at most."""
    box = docker_box(service={"restart": "on-failure:5"})
    box.create()
    assert "restart: 'on-failure:5'" in (box.compose_folder / "docker-compose.yml").read_text()
    assert box.inspect()["HostConfig"]["RestartPolicy"] == {
        "Name": "on-failure",
        "MaximumRetryCount": 5,
    }
