"""Rendering options besides the plan: how this box is started."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentbox.plan.model import Plan
from agentbox.plan.render.errors import RenderError

IMAGE_VARIABLE = "AGENTBOX_IMAGE_REF"
IMAGE_LABEL = "org.agentbox.image-ref"  # the image of the container, by digest or image id
_HOOK_PREFIX = "AGENTBOX_TEST_"


@dataclass(frozen=True)
class RenderOptions:
    """`image_ref` is a reference with digest; "" or an image id mean the plan's tag. `project` is a
    host directory that replaces the volume `workspace`; `hooks` are test variables, rejected unless
    the plan allows them. `volumes` gives other names to volumes of the plan, as a restored
    generation has them. `box`: the name of another box on the same host, with volumes of its own;
    `offline`: it has neither ports nor a network, and writes into no folder of the host.
    """

    image_ref: str = ""
    project: Path | None = None
    strict: bool = False
    hooks: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, str] = field(default_factory=dict)
    box: str = ""
    offline: bool = False

    def check(self, plan: Plan) -> None:
        """Raises RenderError for a relative project directory, or for a variable that is not a test
        hook of this plan.
        """
        if self.project is not None and not self.project.is_absolute():
            raise RenderError(
                f"cannot mount {self.project}: the path is relative", "give the absolute path"
            )
        for name in sorted(self.hooks):
            if not name.startswith(_HOOK_PREFIX) or not plan.test_hooks:
                raise RenderError(
                    f"cannot set {name} in the box: the plan has no test hooks, or this is not one",
                    f"test hooks start with {_HOOK_PREFIX} and need agentbox build --test-hooks",
                )


def image_reference(plan: Plan, options: RenderOptions) -> str:
    """The image in generated files. An image id is valid in one engine only, so it goes into `.env`
    instead.
    """
    return (
        image_tag(plan)
        if options.image_ref.startswith("sha256:")
        else options.image_ref or image_tag(plan)
    )


def image_tag(plan: Plan) -> str:
    """`agentbox:<plan12>`, the tag in the image archive."""
    return f"agentbox:{plan.digest.removeprefix('sha256:')[:12]}"


def labels(plan: Plan) -> dict[str, str]:
    """The digests that trace a container back to its inputs."""
    return {
        "org.agentbox.lock-digest": plan.digests.lock,
        "org.agentbox.manifest-digest": plan.digests.manifest,
        "org.agentbox.plan-digest": plan.digest,
    }


def passed_variables(plan: Plan, *rendered: str) -> tuple[str, ...]:
    """Variables whose values come from the operator's environment at the start. Rendered ones take
    precedence.
    """
    return tuple(name for name in plan.passed if name not in rendered)


def container_environment(plan: Plan, options: RenderOptions, image_ref: str) -> dict[str, str]:
    """Values of recreate and rebuild keys, sorted by name; never a credential."""
    environment = {
        **plan.environment,
        **options.hooks,
        IMAGE_VARIABLE: image_ref,
        "AGENTBOX_PLAN_DIGEST": plan.digest,
        "AGENTBOX_STRICT": "1" if options.strict else "0",
    }
    return {name: environment[name] for name in sorted(environment)}
