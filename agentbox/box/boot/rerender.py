"""Validates, plans and renders a mounted manifest inside the box. Imported only when it differs
from the baked one.
"""

from collections.abc import Iterable

from agentbox.box.boot.context import Context
from agentbox.box.boot.errors import BootError
from agentbox.box.supervision.secrets import visible_environment
from agentbox.core.files.atomic import replace, replace_json
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.findings import Finding
from agentbox.manifest.load import load, parse
from agentbox.manifest.rules.engine import run_rules
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.model import Plan
from agentbox.plan.render.probes import probes
from agentbox.plan.render.supervisord import supervisord

_FIX = (
    "Fix the manifest (`agentbox config validate` shows every finding), then run `agentbox "
    "restart`."
)


def plan_from_bytes(context: Context, data: bytes) -> Plan:
    """The plan of these bytes. Raises BootError with the first finding that is an error."""
    parsed = parse(data, str(context.paths.manifest))
    features = load_features()
    _raise_on_errors(parsed.findings)
    report = run_rules(
        parsed, features=features, environment=visible_environment(context.paths, context.env)
    )
    _raise_on_errors(report.findings)
    lock_bytes = context.paths.lock.read_bytes()
    return build_plan(
        parsed,
        features,
        lock_bytes,
        parse_lock(lock_bytes),
        context.baked.system,
        test_hooks=context.baked.test_hooks,
    )


def install(context: Context, plan: Plan) -> None:
    """Writes the rendered files below `/run/agentbox` and puts this plan in force."""
    paths = context.paths
    replace_json(paths.drift_plan, plan.to_json(), durable=False)
    replace(paths.drift_supervisord_conf, supervisord(plan, paths).encode(), durable=False)
    replace(paths.drift_probes, probes(plan).encode(), durable=False)
    context.plan, context.plan_path = plan, paths.drift_plan
    context.supervisord_conf, context.probes_path = paths.drift_supervisord_conf, paths.drift_probes


def check_environment(context: Context) -> None:
    """Runs the rules again with the environment of this box. Raises BootError with the first
    error.
    """
    parsed = load(context.paths.baked_manifest)
    environment = visible_environment(context.paths, context.env)
    _raise_on_errors(run_rules(parsed, features=load_features(), environment=environment).findings)


def _raise_on_errors(findings: Iterable[Finding]) -> None:
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise BootError(
            f"cannot use the mounted manifest: {errors[0].code} {errors[0].message}{more}", _FIX
        )
