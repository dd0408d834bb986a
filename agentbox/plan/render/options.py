"""What a rendering takes besides the plan: how this one box is started."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentbox.plan.model import Plan
from agentbox.plan.render.errors import RenderError

IMAGE_VARIABLE = "AGENTBOX_IMAGE_REF"
IMAGE_LABEL = (
    "org.agentbox.image-ref"  # what the container was made from; with its digest, or an image id
)
_HOOK_PREFIX = "AGENTBOX_TEST_"


@dataclass(frozen=True)
class Options:
    """`image_ref` is a reference with digest, "" (or an image id) = the tag of the plan; `project` a host folder that
    takes the place of the volume `workspace`; `hooks` are test variables, refused unless the plan permits them."""

    image_ref: str = ""
    project: Path | None = None
    strict: bool = False
    hooks: Mapping[str, str] = field(default_factory=dict)

    def check(self, plan: Plan) -> None:
        """Raises RenderError for a relative project folder, or for a variable that is no test hook of this plan."""
        if self.project is not None and not self.project.is_absolute():
            raise RenderError(
                f"cannot mount {self.project}: the path is relative", "give the absolute path"
            )
        for name in sorted(self.hooks):
            if not name.startswith(_HOOK_PREFIX) or not plan.test_hooks:
                raise RenderError(
                    f"cannot set {name} in the box: the plan has no test hooks, or this is none",
                    f"test hooks start with {_HOOK_PREFIX} and need agentbox build --test-hooks",
                )


def image_reference(plan: Plan, options: Options) -> str:
    """What stands in generated files. An image id is known to one engine only, so it goes into `.env` instead."""
    return (
        image_tag(plan)
        if options.image_ref.startswith("sha256:")
        else options.image_ref or image_tag(plan)
    )


def image_tag(plan: Plan) -> str:
    """`agentbox:<plan12>`, the tag in the image archive."""
    return f"agentbox:{plan.digest.removeprefix('sha256:')[:12]}"


def labels(plan: Plan) -> dict[str, str]:
    """The digests by which a container can be traced back to its inputs."""
    return {
        "org.agentbox.lock-digest": plan.digests.lock,
        "org.agentbox.manifest-digest": plan.digests.manifest,
        "org.agentbox.plan-digest": plan.digest,
    }


def passed_variables(plan: Plan, *rendered: str) -> tuple[str, ...]:
    """Names of variables whose values the operator's environment has when the box is started. What is rendered wins."""
    return tuple(name for name in plan.passed if name not in rendered)


def container_environment(plan: Plan, options: Options, image_ref: str) -> dict[str, str]:
    """Plain data of recreate and rebuild keys, sorted by name; never a credential."""
    environment = {
        **plan.environment,
        **options.hooks,
        IMAGE_VARIABLE: image_ref,
        "AGENTBOX_PLAN_DIGEST": plan.digest,
        "AGENTBOX_STRICT": "1" if options.strict else "0",
    }
    return {name: environment[name] for name in sorted(environment)}
