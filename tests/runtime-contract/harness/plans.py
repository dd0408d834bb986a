"""The plan of a manifest's text, through the product's own code."""

from agentbox.core.paths import CHECKOUT
from agentbox.host.packages.lock_inputs import host_system
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import parse
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.model import Plan


def plan_of(text: str, *, test_hooks: bool = False) -> Plan:
    """The plan of a manifest text over the committed lock."""
    manifest = parse(text.encode(), "agentbox.toml")
    assert manifest.effective is not None, manifest.findings
    lock = CHECKOUT / "agentbox.lock"
    return build_plan(
        manifest,
        load_features(),
        lock.read_bytes(),
        parse_lock(lock),
        host_system(),
        test_hooks=test_hooks,
    )
