"""Facts about this boot for the probes. Without a boot (a test, a bare start) only the plan is
used.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, field

from agentbox.box.supervision.boot_record import BootRecord, Posture, PostureDrift
from agentbox.box.supervision.fault_hooks import FaultHooks
from agentbox.core.canonical import canonical_json
from agentbox.core.files.atomic import read_json
from agentbox.core.frozen import frozen
from agentbox.core.paths import Paths, environment
from agentbox.plan.model import Plan


@frozen
class BootFacts:
    """Read once at start. `image_ref` is without host or credential, as compose rendered it."""

    boot_id: str
    plan_digest: str
    image_ref: str = ""
    revision: str | None = None
    digests: Mapping[str, str | None] = field(default_factory=dict)
    landlock_abi: int = 0
    drift: tuple[PostureDrift, ...] = ()
    target: str = ""
    protections_absent: tuple[str, ...] = ()
    posture_digest: str = ""  # `sha256:<hex>` of the report in canonical JSON
    previous_shutdown: str = "first"
    hooks: FaultHooks = field(default_factory=FaultHooks)


def _digest(posture: Posture) -> str:
    return f"sha256:{hashlib.sha256(canonical_json(asdict(posture))).hexdigest()}"


def load_boot_facts(record: BootRecord | None, plan: Plan, paths: Paths) -> BootFacts:
    """Raises ValueError for a damaged `build.json`."""
    build = read_json(paths.build_record) or {}
    # The revision is in the image config, not in a layer, or every commit would create a new layer.
    revision = build.get("revision") or environment().get("AGENTBOX_REVISION")
    if record is None:
        return BootFacts(boot_id="", plan_digest=plan.digest, revision=revision)
    return BootFacts(
        boot_id=record.boot_id,
        plan_digest=plan.digest,
        image_ref=record.image_ref,
        revision=revision,
        digests=record.digests,
        landlock_abi=record.landlock_abi,
        drift=record.posture.drift,
        target=record.target,
        protections_absent=record.protections_absent,
        previous_shutdown=record.previous.shutdown,
        posture_digest=_digest(record.posture),
        hooks=record.hooks,
    )
