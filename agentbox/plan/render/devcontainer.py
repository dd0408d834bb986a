"""plan -> .devcontainer.json beside the compose file: an editor starts the same service. The file
only refers to that service and adds no mounts, capabilities, ports, init or user, so a dev
container gets exactly what the compose file grants.
"""

import json
from typing import Any

from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.names import SERVICE
from agentbox.plan.render.compose import COMPOSE_FILE

DEVCONTAINER_FILE = ".devcontainer.json"
"""In the root of the directory that the editor opens: Compose 1.29 resolves the seccomp path from
there.
"""

_USER = "agentbox"  # uid 1000 in the image's /etc/passwd


def devcontainer(plan: Plan) -> str:
    """The file as text (JSON). Source of the keys: containers.dev, "Dev Container metadata
    reference".
    """
    data = {
        "name": plan.name,
        "dockerComposeFile": COMPOSE_FILE,
        "service": SERVICE,
        **_secret_files(plan),
        "overrideCommand": False,
        "updateRemoteUserUID": False,
        "remoteUser": _USER,
        "workspaceFolder": str(Paths().workspace),
        "userEnvProbe": "none",
        "shutdownAction": "stopCompose",
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _secret_files(plan: Plan) -> dict[str, Any]:
    """Runs on the host before the container is created: an unset secret is an empty file, since a
    mount needs a file.
    """
    if not plan.secrets:
        return {}
    paths = " ".join(f"secrets/{name}" for name in plan.secrets)
    return {"initializeCommand": f"mkdir -m 700 -p secrets && touch -a {paths}"}
