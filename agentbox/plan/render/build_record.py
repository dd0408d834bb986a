"""plan -> build.json: digests of the image's inputs, for the sentinel, `/v1/meta` and `verify`."""

import json

from agentbox.core.canonical import digest
from agentbox.plan.model import Plan
from agentbox.plan.render.probes import probes
from agentbox.plan.render.supervisord import supervisord


def build_record(plan: Plan) -> bytes:
    """Without layer digests: those of the layers and of the closure are only in the image
    config.
    """
    data = {
        "digests": {
            "lock": plan.digests.lock,
            "manifest": plan.digests.manifest,
            "plan": plan.digest,
            "probes": digest(probes(plan).encode()),
            "seccomp": plan.digests.seccomp,
            "supervisord": digest(supervisord(plan).encode()),
        },
        "schema": 1,
        "system": plan.system,
        "test_hooks": plan.test_hooks,
        "version": plan.version,
    }
    return (json.dumps(data, indent=1, sort_keys=True) + "\n").encode()
