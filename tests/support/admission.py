"""A manifest with agents, requesters, and what admission decides on: a host with room and without
agents, or with the running agent `lead-1`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from agentbox.agents.admission.admit import admit
from agentbox.agents.admission.draft import AdmissionInputs, Draft, HostUsage, Parent, Requester
from agentbox.contracts.orchestrator import AgentSpec
from agentbox.core.paths import Paths
from support.host_configs import host_config
from support.plans import plan_of

MANIFEST: Final = """
[egress]
allow = ["example.com"]
[providers.house]
enabled = true
kind = "anthropic"
env_var = "HOUSE_KEY"
[agents.lead]
command = ["lead"]
profile = "standard"
children = ["reader", "wide"]
secrets = ["LAB_SECRET"]
max_instances = 2
[agents.lead.limits]
fds = 512
[agents.reader]
command = ["reader"]
profile = "readonly"
secrets = ["LAB_SECRET"]
[agents.wide]
command = ["wide"]
profile = "reach"
[agents.other]
command = ["other"]
[agents.off]
command = ["true"]
enabled = false
[agents.key]
command = ["true"]
secrets = ["HOUSE_KEY"]
[policies.reach]
base = "standard"
[[policies.reach.net]]
mode = "allow"
operations = ["tcp"]
patterns = ["5432"]
"""
PLAN = plan_of(MANIFEST)
CONFIG = host_config(
    Paths(Path("/nonexistent")),
    limits=PLAN.limits,
    agents=PLAN.agents,
    policies=PLAN.policies,
    providers=PLAN.providers,
    egress_allow=PLAN.reach.allow,
    max_agents=3,
    max_depth=2,
)
NOW = 1_000_000.0
GIB = 1 << 30
ROOM = HostUsage(open_files=10_000, disk_free=GIB, disk_size=GIB)
INPUTS = AdmissionInputs(config=CONFIG, now=NOW, usage=ROOM)
OPERATOR = Requester(principal="urn:op", request_id="1")
ADMIN = replace(OPERATOR, admin=True)
LEAD_ITSELF = Requester(principal="urn:agentbox:agent:lead-1", request_id="2")
LEAD = AgentSpec(name="lead", agent="lead")
READER = AgentSpec(name="reader", agent="reader", parent_id="lead-1")


def _running(draft: Draft) -> Parent:
    """The agent `lead-1` of a draft."""
    return Parent(
        agent_id="lead-1",
        name=draft.spec.name,
        state="running",
        over=False,
        depth=0,
        limits=draft.limits,
        grant_set=draft.grant_set,
        session_id="session",
        trace_id="trace",
    )


PARENT = _running(admit(LEAD, OPERATOR, INPUTS))
BELOW = replace(INPUTS, parent=PARENT)
