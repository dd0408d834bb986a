"""plan -> `.env` beside the compose file."""

from agentbox.plan.model import Plan
from agentbox.plan.render.options import IMAGE_VARIABLE


def env_file(plan: Plan, image_ref: str = "", box: str = "") -> str:
    """The project name (Compose 1.29 rejects it in the compose file), and the image:
    `name@sha256:…`, or the image id if the engine has no digest for a loaded image.
    """
    reference = [f"{IMAGE_VARIABLE}={image_ref}"] if image_ref else []
    return "\n".join([*reference, f"COMPOSE_PROJECT_NAME={box or plan.name}"]) + "\n"
