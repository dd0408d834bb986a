"""The configuration of agent-host, for tests of its parts."""

from typing import Any

from agentbox.agents.config import HostConfig
from agentbox.core.paths import Paths
from agentbox.manifest.gateway_port import GATEWAY_PORT
from agentbox.manifest.slot_options import ProcessOptions
from agentbox.plan.skill_catalogue import SkillCatalogue
from support import tables


def host_config(paths: Paths, **changes: Any) -> HostConfig:
    """That of a box without agents and with no limit of its own."""
    config: dict[str, Any] = {
        "limits": tables.limits(),
        "feature_env": {},
        "agents": {},
        "policies": {},
        "providers": {},
        "sandboxes": tables.sandboxes(),
        "egress_allow": (),
        "programs": (),
        "gateway_port": GATEWAY_PORT,
        **vars(ProcessOptions()),
        "log_level": "info",
        "dev": False,
        "box_tasks": 0,
        "box_memory": 0,
        "closed_ports": (),
        "target_ports": (),
        "writable_dirs": (),
    }
    return HostConfig(paths=paths, skills=SkillCatalogue(paths), **{**config, **changes})
