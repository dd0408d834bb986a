"""Validates, plans and renders a mounted manifest inside the box. Imported only when it differs from the baked one."""

from collections.abc import Iterable

from agentbox import features, manifest, rules
from agentbox.boot.context import Context
from agentbox.boot.errors import BootError
from agentbox.lockfile import read
from agentbox.manifest import Finding
from agentbox.plan import make_plan
from agentbox.plan.model import Plan
from agentbox.render import probes, supervisord
from agentbox.supervision.files import replace, replace_json
from agentbox.supervision.secrets import visible_environment

_FIX = "Correct the manifest (`agentbox config validate` shows every finding), then run `agentbox restart`."


def make(context: Context, data: bytes) -> Plan:
    """The plan of these bytes. Raises BootError with the first finding that is an error."""
    parsed = manifest.parse(data, str(context.paths.manifest))
    known = features.load_features()
    _refuse(parsed.findings)
    report = rules.run(parsed, features=known, environment=visible_environment(context.paths, context.env))
    _refuse(report.findings)
    lock_bytes = context.paths.lock.read_bytes()
    return make_plan(
        parsed, known, lock_bytes, read(lock_bytes), context.baked.system, test_hooks=context.baked.test_hooks
    )


def install(context: Context, plan: Plan) -> None:
    """Puts the rendered files below `/run/agentbox`, and this plan in force."""
    paths = context.paths
    replace_json(paths.drift_plan, plan.to_json(), durable=False)
    replace(paths.drift_supervisord_conf, supervisord(plan, paths).encode(), durable=False)
    replace(paths.drift_probes, probes(plan).encode(), durable=False)
    context.plan, context.plan_path = plan, paths.drift_plan
    context.supervisord_conf, context.probes_path = paths.drift_supervisord_conf, paths.drift_probes


def check_environment(context: Context) -> None:
    """Runs the rules again with what this box can see. Raises BootError with the first error."""
    parsed = manifest.load(context.paths.baked_manifest)
    environment = visible_environment(context.paths, context.env)
    _refuse(rules.run(parsed, features=features.load_features(), environment=environment).findings)


def _refuse(findings: Iterable[Finding]) -> None:
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise BootError(f"cannot use the mounted manifest: {errors[0].code} {errors[0].message}{more}", _FIX)
