"""Plans of a manifest text, with a lock without packages, for tests of plan readers."""

from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import parse
from agentbox.manifest.skills.corpus import shipped_digests
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.model import Lock
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.model import Plan

SYSTEM = "x86_64-linux"
SHORTEST = "[meta]\nschema_version = 1\n"


def plan_of(text: str = "", *, system: str = SYSTEM, test_hooks: bool = False) -> Plan:
    """Return the plan of a manifest; `[meta]` is prepended unless `text` starts with it. ValueError
    if it has findings.
    """
    manifest = parse(manifest_bytes(text), "agentbox.toml")
    features = load_features()
    lock = lock_of(enabled_features(manifest, features), system)
    return build_plan(manifest, features, serialize_lock(lock), lock, system, test_hooks=test_hooks)


def manifest_bytes(text: str = "") -> bytes:
    """Return the manifest of `plan_of`."""
    return (text if text.startswith(("[meta]", "meta")) else SHORTEST + text).encode()


def lock_of(features: tuple[str, ...] = ("build", "core"), *systems: str) -> Lock:
    """Return a lock without rows, for these features and systems."""
    return Lock(
        inputs="sha256:" + "0" * 64,
        source="debian",
        suite="trixie",
        python="3.13",
        systems=systems or (SYSTEM,),
        features=features,
        skills=shipped_digests(),
    )
