"""Images of builds that are no longer in the record: removed if agentbox built them and nothing
uses them.
"""

from __future__ import annotations

import json

from agentbox.core.errors import AgentboxError
from agentbox.host.engines.command import succeeds
from agentbox.host.engines.docker.docker_cli import docker
from agentbox.host.engines.state import BoxState, BuildStamp
from agentbox.host.generations.store import GenerationStore

PLAN_LABEL = "org.agentbox.plan-digest"
_DOING = "remove old images"


def remove_old_images(state: BoxState) -> list[str]:
    """Removes the images of this box's outdated builds. Returns the ids that were removed.

    Kept are images in the recent builds and generations of any box of this user, images used by a
    container (running or not), and images without the label of the recorded plan. Kept images stay
    in the record for the next time.
    """
    recorded_ids = {stamp.image_id for stamp in state.builds()}
    recorded_ids |= {stamp.image_id for other in state.other_boxes() for stamp in other.builds()}
    recorded_ids |= {
        generation.image_id
        for box in (state, *state.other_boxes())
        for generation in GenerationStore(box).rows()
    }
    removed, remaining = [], []
    for stamp in state.outdated_builds():
        if stamp.image_id in recorded_ids or not _exists(stamp):
            continue
        if _remove_image(stamp):
            removed.append(stamp.image_id)
        else:
            remaining.append(stamp)
    state.save_outdated_builds(remaining)
    return removed


def _exists(stamp: BuildStamp) -> bool:
    return succeeds(["docker", "image", "inspect", stamp.image_id])


def _remove_image(stamp: BuildStamp) -> bool:
    """Removes without force: the daemon refuses an image that a container uses or that has a second
    name.
    """
    if _plan_digest(stamp.image_id) != stamp.plan_digest:
        return False
    if docker(
        ["ps", "--all", "--quiet", "--filter", f"ancestor={stamp.image_id}"], doing=_DOING
    ).split():
        return False
    try:
        docker(["image", "rm", stamp.image_id], doing=_DOING)
    except AgentboxError:
        return False
    return True


def _plan_digest(image_id: str) -> str:
    labels = json.loads(
        docker(["image", "inspect", "--format", "{{json .Config.Labels}}", image_id], doing=_DOING)
    )
    return str((labels or {}).get(PLAN_LABEL, ""))
