"""RC-015: what the engine says of the running container is the baseline, line by line."""

import json
from collections.abc import Callable

from harness.container import DockerBox

from agentbox.settings import CHECKOUT

TMPFS = {"/run", "/tmp", "/var/log", "/var/log/supervisor", "/var/run"}


def test_rc_015(docker_box: Callable[..., DockerBox]) -> None:
    """User, root, capabilities, privileges, seccomp text, five tmpfs with owner, limits, log, restart, addresses."""
    box = docker_box()
    box.start()
    box.wait_ready()
    found = box.inspect()
    config, host = found["Config"], found["HostConfig"]
    assert config["User"] == "1000:1000"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["Privileged"] is False
    options = host["SecurityOpt"]
    assert "no-new-privileges:true" in options
    seccomp = next(option.removeprefix("seccomp=") for option in options if option.startswith("seccomp="))
    assert json.loads(seccomp) == json.loads((CHECKOUT / "config/seccomp/agentbox.json").read_text())
    assert set(host["Tmpfs"]) == TMPFS
    for target, flags in host["Tmpfs"].items():
        assert {"uid=1000", "gid=1000", "noexec", "nosuid", "nodev"} <= set(flags.split(",")), target
    assert host["Memory"] == box.plan.resources.memory
    assert host["MemorySwap"] == box.plan.resources.memory
    assert host["NanoCpus"] == int(box.plan.resources.cpus * 1e9)
    assert host["PidsLimit"] == box.plan.resources.pids
    limits = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in host["Ulimits"]}
    assert limits == {"nofile": (box.plan.resources.nofile,) * 2, "core": (0, 0)}
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-file": "3", "max-size": "10m"}}
    assert host["IpcMode"] == "private"
    assert not host["PidMode"]
    assert not host["UTSMode"]
    assert not host["Devices"]
    assert host["NetworkMode"] != "host"
    published = [binding for bindings in host["PortBindings"].values() for binding in bindings]
    assert len(published) == 2
    assert {binding["HostIp"] for binding in published} == {"127.0.0.1"}
    binds = [mount for mount in found["Mounts"] if mount["Type"] == "bind"]
    assert {mount["Destination"] for mount in binds} == {"/etc/agentbox.toml"} | {
        f"/run/secrets/{s}" for s in box.plan.secrets
    }
    assert not any("docker.sock" in mount["Source"] for mount in binds)


def test_rc_015_restart_policy_is_rendered(docker_box: Callable[..., DockerBox]) -> None:
    """Without the test's override the container restarts on failure five times at most."""
    box = docker_box(override={"restart": "on-failure:5"})
    box.render()
    assert "restart: on-failure:5" in (box.folder / "docker-compose.yml").read_text()
    box.start()
    assert box.inspect()["HostConfig"]["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 5}
