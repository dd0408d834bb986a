"""plan -> probes.json."""

import json
from dataclasses import asdict

from agentbox.plan.model import Plan


def probes(plan: Plan) -> str:
    """`{"plan_digest", "probes": [...]}`, each probe with all its fields, in the plan's order."""
    data = {"plan_digest": plan.digest, "probes": [asdict(probe) for probe in plan.probes]}
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
