"""The plan of the mounted manifest."""

from agentbox.box.supervision.secrets import visible_environment
from agentbox.core import paths as settings
from agentbox.core.paths import Paths
from agentbox.core.slot_errors import ValidationError
from agentbox.plan.model import Plan


def build_mounted_plan(paths: Paths, current: Plan) -> Plan:
    """The plan of the mounted manifest. Raises ValidationError with its findings."""
    from agentbox.manifest.features.loader import load_features
    from agentbox.manifest.load import load
    from agentbox.manifest.rules.engine import (
        run_rules,  # applying is rare, and these imports cost start time
    )
    from agentbox.plan.build import build_plan
    from agentbox.plan.lockfile.reader import parse_lock

    parsed, features = load(paths.manifest), load_features()
    environment = visible_environment(paths, settings.environment())
    findings = [
        *parsed.findings,
        *run_rules(parsed, features=features, environment=environment).findings,
    ]
    if errors := [finding for finding in findings if finding.severity == "error"]:
        rows = [
            {"pointer": finding.key, "detail": f"{finding.code} {finding.message}"}
            for finding in errors
        ]
        raise ValidationError(
            f"cannot apply {paths.manifest.name}: {len(rows)} findings", errors=rows
        )
    lock = paths.lock.read_bytes()
    return build_plan(
        parsed, features, lock, parse_lock(lock), current.system, test_hooks=current.test_hooks
    )
