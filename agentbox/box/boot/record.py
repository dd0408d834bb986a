"""Builds `boot.json` from the results of the phases."""

import os
import re
from datetime import timedelta

from agentbox.box.boot.context import Context
from agentbox.box.supervision.boot_record import BootRecord
from agentbox.box.supervision.missing_protections import absent_protections
from agentbox.core import clock
from agentbox.core.canonical import digest
from agentbox.core.linux import procfs

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}$")


def boot_record(context: Context) -> BootRecord:
    """The record of this boot for the seal, the API and every program."""
    age = timedelta(seconds=procfs.now() - context.started)
    return BootRecord(
        boot_id=context.log.boot_id,
        started=context.started,
        started_at=clock.to_wire(clock.now() - age),
        strict=context.strict,
        image_ref=context.log.image_ref,
        digests=_digests(context),
        plan=str(context.plan_path),
        supervisord_conf=str(context.supervisord_conf),
        kernel_release=os.uname().release,
        landlock_abi=context.landlock_abi,
        posture=context.posture,
        previous=context.previous,
        target=context.target,
        protections_absent=absent_protections(
            contained=context.paths.is_container, target=context.target
        ),
        optional_missing=context.optional_missing,
        hooks=context.hooks,
    )


def _digests(context: Context) -> dict[str, str | None]:
    """The digests named in `sentinel.DIGESTS`. `image` is the digest in the image reference."""
    reference = _DIGEST.search(context.log.image_ref)
    return {
        "baked_manifest": context.baked.digests.manifest,
        "closure": context.env.get("AGENTBOX_CLOSURE_DIGEST") or None,
        "image": reference.group() if reference else None,
        "lock": context.plan.digests.lock,
        "manifest": context.plan.digests.manifest,
        "plan": context.plan.digest,
        "probes": digest(context.probes_path.read_bytes()),
        "seccomp": context.plan.digests.seccomp,
        "supervisord": digest(context.supervisord_conf.read_bytes()),
    }
