"""The plan that a manifest's text means here, through the product's own path."""

from agentbox.features import load_features
from agentbox.lock import host_system
from agentbox.lockfile import read
from agentbox.manifest import parse
from agentbox.plan import make_plan
from agentbox.plan.model import Plan
from agentbox.settings import CHECKOUT


def plan_of(text: str, *, test_hooks: bool = False) -> Plan:
    """The plan of a manifest text over the committed lock."""
    manifest = parse(text.encode(), "agentbox.toml")
    assert manifest.effective is not None, manifest.findings
    lock = CHECKOUT / "agentbox.lock"
    return make_plan(manifest, load_features(), lock.read_bytes(), read(lock), host_system(), test_hooks=test_hooks)
