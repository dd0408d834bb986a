"""podman_run: the same grants as compose, as options of `podman run`."""

from pathlib import Path

import yaml
from support.plans import plan_of

from agentbox.plan.render.compose import compose
from agentbox.plan.render.options import RenderOptions
from agentbox.plan.render.podman import podman_run

IMAGE = "agentbox:0123456789ab@sha256:" + "a" * 64


def _values(argv: tuple[str, ...], flag: str) -> list[str]:
    return [word.partition("=")[2] for word in argv if word.startswith(f"--{flag}=")]


def test_every_grant_and_limit_of_the_compose_file_is_in_the_arguments() -> None:
    """Mount options, addresses, limits, labels and variables agree word for word."""
    plan = plan_of()
    argv = podman_run(plan, RenderOptions(IMAGE), Path("/state"), rootless=True)
    service = yaml.safe_load(compose(plan, IMAGE))["services"]["agentbox"]
    assert argv[-1] == IMAGE
    assert _values(argv, "tmpfs") == service["tmpfs"]
    assert _values(argv, "publish") == service["ports"]
    assert _values(argv, "memory") == [service["mem_limit"]]
    assert _values(argv, "pids-limit") == [str(service["pids_limit"])]
    assert _values(argv, "user") == [service["user"]]
    assert _values(argv, "cap-drop") == service["cap_drop"]
    labels = {**service["labels"], "org.agentbox.image-ref": IMAGE}  # compose takes it from .env
    assert _values(argv, "label") == [f"{name}={value}" for name, value in labels.items()]
    names = {row.partition("=")[0] for row in _values(argv, "env")}
    assert names == set(service["environment"])


def test_the_root_is_read_only_and_nothing_is_widened() -> None:
    """podman mounts tmpfs of its own over a read-only root unless configured otherwise."""
    argv = podman_run(plan_of(), RenderOptions(IMAGE), Path("/state"), rootless=False)
    assert {"--read-only", "--read-only-tmpfs=false", "--security-opt=no-new-privileges"} <= set(
        argv
    )
    assert "--security-opt=seccomp=/state/seccomp/agentbox.json" in argv
    assert not any(
        word.startswith(("--cap-add", "--device", "--privileged", "--userns")) for word in argv
    )


def test_rootless_maps_the_caller_and_a_project_folder_is_bound() -> None:
    """uid 1000 of the box is the caller, so the project directory stays theirs."""
    argv = podman_run(
        plan_of(), RenderOptions(IMAGE, Path("/home/me")), Path("/state"), rootless=True
    )
    assert "--userns=keep-id:uid=1000,gid=1000" in argv
    assert "--mount=type=bind,source=/home/me,target=/workspace" in argv
    assert not any("agentbox-workspace" in word for word in argv)
