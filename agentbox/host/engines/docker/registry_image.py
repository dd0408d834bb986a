"""An image of a registry, by digest: pulled by the engine's client, which checks the digest, and
checked against the plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from agentbox.core.canonical import canonical_json, digest
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.host.engines.docker import daemon_status
from agentbox.host.engines.docker.docker_cli import docker
from agentbox.host.engines.docker.old_images import PLAN_LABEL
from agentbox.host.engines.state import BuildStamp
from agentbox.host.uninstall.inventory import Inventory
from agentbox.plan.model import Plan

_REFERENCE: Final = re.compile(r"(?P<name>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})")
_PULL_SECONDS: Final = 3600.0


def ensure_image(reference: str, plan: Plan) -> BuildStamp:
    """Return the image of `NAME@sha256:…`, pulling it if necessary.

    Raises AgentboxError: exit 2 for a reference without digest, 4 if the registry does not serve
    it, 5 if the image was built from another lock or seccomp list than this plan, or with test
    hooks that the plan lacks.
    """
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise AgentboxError(
            f"cannot pull {reference}: it has no digest",
            "Use NAME@sha256:… with 64 hexadecimal digits: a tag may change.",
            exit_code=ExitCode.USAGE,
        )
    image = _inspect_image(reference) or _pull(reference)
    labels = image["Config"].get("Labels") or {}
    _check_labels(reference, labels, plan)
    return BuildStamp(
        key=digest(canonical_json({"registry": reference})),
        image_id=image["Id"],
        manifest_digest=match["digest"],
        tag=match["name"],
        plan_digest=labels[PLAN_LABEL],
        pulled=True,
    )


def _inspect_image(reference: str) -> dict[str, Any] | None:
    """Return the daemon's description of a local image."""
    image_ids = docker(
        ["image", "ls", "--quiet", "--no-trunc", reference], doing=f"find {reference}"
    ).split()
    if not image_ids:
        return None
    image: dict[str, Any] = json.loads(
        docker(["image", "inspect", reference], doing=f"inspect {reference}")
    )[0]
    return image


def _pull(reference: str) -> dict[str, Any]:
    doing = f"pull {reference}"
    Inventory.for_this_user().add("image", reference)
    try:
        docker(["pull", "--quiet", reference], doing=doing, timeout=_PULL_SECONDS)
    except AgentboxError as error:
        if error.exit_code is not ExitCode.ENGINE or error.hint or not daemon_status.is_reachable():
            raise
        hint = (
            "Check the name and the digest in the registry; run docker login if it requires "
            "authentication."
        )
        raise AgentboxError(error.message, hint, exit_code=ExitCode.FETCH) from error
    image = _inspect_image(reference)
    if image is None:
        raise AgentboxError(
            f"cannot {doing}: docker does not list it afterwards", exit_code=ExitCode.ENGINE
        )
    return image


def _check_labels(reference: str, labels: Mapping[str, str], plan: Plan) -> None:
    if PLAN_LABEL not in labels:
        raise AgentboxError(
            f"cannot use {reference}: it is not an agentbox image (no label {PLAN_LABEL})",
            exit_code=ExitCode.LOCK,
        )
    expected = {
        "lock-digest": plan.digests.lock,
        "seccomp-digest": plan.digests.seccomp,
        "test-hooks": "true" if plan.test_hooks else "false",
    }
    for name, value in expected.items():
        actual = labels.get(f"org.agentbox.{name}", "nothing")
        if actual != value:
            raise AgentboxError(
                f"cannot use {reference}: its {name} is {actual}, this checkout has {value}",
                "Use the checkout and agentbox.lock that the image was built from, or build "
                "one: ./agentbox.sh up.",
                exit_code=ExitCode.LOCK,
            )
