"""The rules of the Pod Security Standards: each control trips on what it forbids, at the level that forbids it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml
from support.plans import manifest_bytes, plan_of

from agentbox.plan.model import Device, Plan, SecurityExceptionPlan, TmpfsPlan, VolumePlan
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.kubernetes.objects import kubernetes
from agentbox.plan.render.kubernetes.security import PodSecurityError, violations
from agentbox.plan.render.options import RenderOptions

IMAGE = "registry.example/agentbox@sha256:" + "a" * 64
Spoil = Callable[[dict[str, Any], dict[str, Any]], Any]

# What is done to the pod's spec and its container, the level that forbids it, the control's name in the standard.
BASELINE: dict[str, tuple[str, Spoil]] = {
    "host network": ("Host Namespaces", lambda pod, box: pod.update(hostNetwork=True)),
    "host pid": ("Host Namespaces", lambda pod, box: pod.update(hostPID=True)),
    "host ipc": ("Host Namespaces", lambda pod, box: pod.update(hostIPC=True)),
    "privileged": ("Privileged Containers", lambda pod, box: box["securityContext"].update(privileged=True)),
    "sys_admin": ("Capabilities", lambda pod, box: box["securityContext"]["capabilities"].update(add=["SYS_ADMIN"])),
    "host path": ("HostPath Volumes", lambda pod, box: pod["volumes"].append({"name": "h", "hostPath": {"path": "/"}})),
    "host port": ("Host Ports", lambda pod, box: box["ports"][0].update(hostPort=9090)),
    "probe elsewhere": (
        "Host Probes / Lifecycle Hooks", lambda pod, box: box["livenessProbe"]["httpGet"].update(host="10.0.0.1")
    ),
    "hook elsewhere": (
        "Host Probes / Lifecycle Hooks",
        lambda pod, box: box.update(lifecycle={"preStop": {"tcpSocket": {"host": "a", "port": 1}}}),
    ),
    "apparmor": ("AppArmor", lambda pod, box: pod["securityContext"].update(appArmorProfile={"type": "Unconfined"})),
    "selinux type": ("SELinux", lambda pod, box: box["securityContext"].update(seLinuxOptions={"type": "spc_t"})),
    "selinux user": ("SELinux", lambda pod, box: box["securityContext"].update(seLinuxOptions={"user": "root"})),
    "proc": ("/proc Mount Type", lambda pod, box: box["securityContext"].update(procMount="Unmasked")),
    "unconfined": ("Seccomp", lambda pod, box: box["securityContext"].update(seccompProfile={"type": "Unconfined"})),
    "sysctl": (
        "Sysctls", lambda pod, box: pod["securityContext"].update(sysctls=[{"name": "kernel.msgmax", "value": "1"}])
    ),
}  # fmt: skip
RESTRICTED: dict[str, tuple[str, Spoil]] = {
    "nfs": (
        "Volume Types",
        lambda pod, box: pod["volumes"].append({"name": "n", "nfs": {"server": "a", "path": "/"}}),
    ),
    "escalation": (
        "Privilege Escalation",
        lambda pod, box: box["securityContext"].pop("allowPrivilegeEscalation"),
    ),
    "root": ("Running as Non-root", lambda pod, box: pod["securityContext"].pop("runAsNonRoot")),
    "uid 0": (
        "Running as Non-root user",
        lambda pod, box: box["securityContext"].update(runAsUser=0),
    ),
    "no seccomp": ("Seccomp", lambda pod, box: pod["securityContext"].pop("seccompProfile")),
    "nothing dropped": (
        "Capabilities",
        lambda pod, box: box["securityContext"].pop("capabilities"),
    ),
    "chown": (
        "Capabilities",
        lambda pod, box: box["securityContext"]["capabilities"].update(add=["CHOWN"]),
    ),
}


def _template() -> dict[str, Any]:
    text = kubernetes(plan_of(), RenderOptions(IMAGE), manifest=manifest_bytes())
    rows = {row["kind"]: row for row in yaml.safe_load_all(text)}
    template: dict[str, Any] = rows["StatefulSet"]["spec"]["template"]
    return template


def _spoilt(spoil: Spoil) -> dict[str, Any]:
    template = _template()
    assert violations(template) == ()
    spoil(template["spec"], template["spec"]["containers"][0])
    return template


@pytest.mark.parametrize(("control", "spoil"), BASELINE.values(), ids=BASELINE.keys())
def test_a_control_of_baseline_trips_at_both_levels(control: str, spoil: Spoil) -> None:
    """And not at `privileged`, which forbids nothing."""
    template = _spoilt(spoil)
    assert ("baseline", control) in {
        (row.level, row.control) for row in violations(template, "restricted")
    }
    assert {row.control for row in violations(template, "baseline")} == {control}
    assert violations(template, "privileged") == ()


@pytest.mark.parametrize(("control", "spoil"), RESTRICTED.values(), ids=RESTRICTED.keys())
def test_a_control_of_restricted_trips_there_alone(control: str, spoil: Spoil) -> None:
    """`baseline` admits it."""
    template = _spoilt(spoil)
    assert {(row.level, row.control) for row in violations(template)} == {("restricted", control)}
    assert violations(template, "baseline") == ()


def _widened(**added: Any) -> Plan:
    return replace(
        plan_of(), exceptions=(SecurityExceptionPlan(key="desktop", reason="a test", **added),)
    )


@pytest.mark.parametrize(
    ("added", "needed", "control"),
    [
        ({"cap_add": ("CHOWN",)}, "baseline", "Capabilities"),
        ({"cap_add": ("SYS_ADMIN",)}, "privileged", "Capabilities"),
        (
            {"volumes": (VolumePlan(source="/srv/data", target="/data"),)},
            "privileged",
            "HostPath Volumes",
        ),
    ],
)
def test_an_exception_that_breaks_restricted_must_be_allowed_by_name(
    added: dict[str, Any], needed: str, control: str
) -> None:
    """The refusal names exception, level and control; the level that it names is enough."""
    plan = _widened(**added)
    with pytest.raises(
        PodSecurityError, match=rf"security.exceptions.desktop needs {needed}\n.*{control}"
    ):
        kubernetes(plan, RenderOptions(IMAGE), manifest=b"a\n")
    assert "StatefulSet" in kubernetes(
        plan, RenderOptions(IMAGE), manifest=b"a\n", allow_psa=needed
    )


def test_memory_volumes_and_device_plugins_keep_restricted() -> None:
    """The built-in exceptions but gpu-rocm's groups need no wider level: devices come from the vendor's plugin, one."""
    plan = _widened(
        tmpfs=(TmpfsPlan(target="/dev/shm", size=512 << 20, mode="1777"),),
        device_requests=(Device(driver="nvidia", count=-1, capabilities=("gpu",)),),
        devices=("/dev/kfd", "/dev/dri"),
        group_add=("44",),
        runtime="nvidia",
    )
    rows = list(yaml.safe_load_all(kubernetes(plan, RenderOptions(IMAGE), manifest=b"a\n")))
    pod = rows[-1]["spec"]["template"]["spec"]
    limits = pod["containers"][0]["resources"]["limits"]
    assert (limits["nvidia.com/gpu"], limits["amd.com/gpu"]) == ("1", "1")
    assert pod["securityContext"]["supplementalGroups"] == [44]
    assert pod["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize(
    "added",
    [
        {"devices": ("/dev/video0",)},
        {"group_add": ("nosuchgroup",)},
        {"device_requests": (Device(driver="other", count=1, capabilities=("gpu",)),)},
    ],
)
def test_what_kubernetes_cannot_grant_is_refused_by_name(added: dict[str, Any]) -> None:
    """A host path of a device would be a file that the device cgroup refuses to open: no half grant is written."""
    with pytest.raises(RenderError, match="for kubernetes"):
        kubernetes(_widened(**added), RenderOptions(IMAGE), manifest=b"a\n", allow_psa="privileged")
