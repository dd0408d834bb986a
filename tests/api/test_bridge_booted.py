"""A box booted from a manifest whose orchestrator is external-stdio: below a prefix, by boot, supervisord and seal."""

from dataclasses import replace

from agentbox_testkit.contracts.orchestrator_lab import running_pids
from helpers import until
from support.plans import SYSTEM, lock_of
from support.ports import free_port
from support.prefix_box import PYTHON, PrefixBox
from test_supervised import Sealed

from agentbox.manifest.features.loader import enabled_features, load_features
from agentbox.manifest.load import parse
from agentbox.manifest.rules.engine import run_rules as judge
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.writer import serialize_lock as lock_bytes

NEEDLE = "9007199254740991"


def test_a_box_with_a_bridge_boots_and_ends_clean() -> None:
    """The manifest is valid, the plan has no agent-host, the bridge's credential is a secret of the
    box, the box is ready and runs agents, and its shutdown ends them."""
    text = f"""
meta = {{ schema_version = 1, name = "bridged" }}
api = {{ port = {free_port()}, token_env = "BOX_TOKEN" }}
observability.metrics_port = {free_port()}
[adapters]
pods.use = "off"
memory.use = "off"
[adapters.orchestrator]
use = "external-stdio"
command = ["{PYTHON}", "-I", "-m", "agentbox.agents.bridge"]
env = ["PEER_TOKEN"]
""".encode()
    manifest, features = parse(text, "agentbox.toml"), load_features()
    assert [
        one for one in judge(manifest, features=features).findings if one.severity == "error"
    ] == []
    lock = lock_of(enabled_features(manifest, features))
    made = build_plan(manifest, features, lock_bytes(lock), lock, SYSTEM)
    assert "agent-host" not in {program.name for program in made.programs}
    assert "PEER_TOKEN" in made.secrets
    with PrefixBox() as box:
        plan = box.install(replace(made, probes=()))  # the prefix has no packages
        box.paths.lock.write_bytes(lock_bytes(lock))
        for path in (box.paths.manifest, box.paths.baked_manifest):
            path.write_bytes(text)
        sealed = Sealed(box, plan)
        sealed.start()
        until(sealed.ready, 30)
        run = sealed.client.agents.run_once(
            {"name": "t", "argv": ["sh", "-c", "exit 5"], "profile": "sandboxed"}
        )
        assert run.exit.code == 5
        sealed.client.agents.spawn({"name": "t", "argv": ["sleep", NEEDLE], "profile": "sandboxed"})
        assert len(running_pids(NEEDLE)) == 1
        sealed.client.close()
        box.stop()
        assert running_pids(NEEDLE) == []
        assert running_pids(str(box.paths.prefix)) == []
