"""Named render targets, each as files by relative path, one row each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentbox.plan.merge import effective_profile
from agentbox.plan.model import Plan
from agentbox.plan.render.compose import COMPOSE_FILE
from agentbox.plan.render.devcontainer import DEVCONTAINER_FILE, devcontainer
from agentbox.plan.render.env import env_file
from agentbox.plan.render.files import compose_files, plan_text
from agentbox.plan.render.kubernetes.objects import KUBERNETES_FILE, kubernetes
from agentbox.plan.render.kubernetes.security import RESTRICTED
from agentbox.plan.render.options import RenderOptions
from agentbox.plan.render.podman import podman_run
from agentbox.plan.render.probes import probes
from agentbox.plan.render.prometheus import prometheus
from agentbox.plan.render.seccomp import seccomp_text
from agentbox.plan.render.supervisord import supervisord

ALL = "all"


@dataclass(frozen=True)
class RenderInput:
    """The input of all targets."""

    plan: Plan
    manifest: bytes
    image_ref: str = ""
    image_id: str = ""
    project: Path | None = None
    strict: bool = False
    volumes: Mapping[str, str] = field(default_factory=dict)  # of the generation, for compose
    allow_psa: str = RESTRICTED

    @property
    def options(self) -> RenderOptions:
        return RenderOptions(self.image_ref, self.project, self.strict)


Files = dict[str, bytes]


def _compose(inputs: RenderInput) -> Files:
    return compose_files(
        inputs.plan,
        inputs.image_ref,
        manifest=inputs.manifest,
        image_id=inputs.image_id,
        project=inputs.project,
        strict=inputs.strict,
        volumes=inputs.volumes,
    )


def _podman(inputs: RenderInput) -> Files:
    argv = podman_run(inputs.plan, inputs.options, Path(), rootless=True)
    return {"podman-run.txt": "".join(f"{argument}\n" for argument in argv).encode()}


def _kubernetes(inputs: RenderInput) -> Files:
    """The objects, and the seccomp file that each node needs in its kubelet's seccomp directory."""
    stem = effective_profile(inputs.plan).seccomp
    text = kubernetes(
        inputs.plan, inputs.options, manifest=inputs.manifest, allow_psa=inputs.allow_psa
    )
    return {KUBERNETES_FILE: text.encode(), f"seccomp/{stem}.json": seccomp_text(stem).encode()}


TARGETS: Mapping[str, Callable[[RenderInput], Files]] = {
    "compose": _compose,
    "devcontainer": lambda inputs: {
        DEVCONTAINER_FILE: devcontainer(inputs.plan).encode(),
        **_compose(inputs),
    },
    "env": lambda inputs: {
        ".env": env_file(inputs.plan, inputs.image_id or inputs.image_ref).encode()
    },
    "kubernetes": _kubernetes,
    "plan": lambda inputs: {"plan.json": plan_text(inputs.plan).encode()},
    "podman": _podman,
    "probes": lambda inputs: {"probes.json": probes(inputs.plan).encode()},
    "prometheus": lambda inputs: {
        name: text.encode() for name, text in prometheus(inputs.plan).items()
    },
    "supervisord": lambda inputs: {"supervisord.conf": supervisord(inputs.plan).encode()},
}
MAIN_FILE: Mapping[str, str] = {
    "compose": COMPOSE_FILE,
    "devcontainer": DEVCONTAINER_FILE,
    "kubernetes": KUBERNETES_FILE,
}
"""The file shown for a target with several files."""


_REGISTRY_TARGETS = ("kubernetes",)
"""Targets whose image is pulled by another machine: they need a reference with a digest."""


def excluded_targets(target: str, inputs: RenderInput) -> tuple[str, ...]:
    """The targets excluded from `all`, without a reference with digest or with a directory of this
    host.
    """
    local = "@sha256:" not in inputs.image_ref or inputs.project is not None
    return _REGISTRY_TARGETS if target == ALL and local else ()


def render(target: str, inputs: RenderInput) -> Files:
    """The files of a target, or of `all`. Raises KeyError for an unknown name; RenderError and
    PodSecurityError as the targets do.
    """
    names = sorted(TARGETS) if target == ALL else [target]
    files: Files = {}
    for name in sorted(set(names) - set(excluded_targets(target, inputs))):
        files |= TARGETS[name](inputs)
    return files
