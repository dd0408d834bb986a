"""Grants of a dev container: those of the compose service that it uses."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from support.rendered_grants.compose_reader import read_compose
from support.rendered_grants.model import Grants, UnknownGrantError, require_known

_ALLOWED_KEYS = (
    "name",
    "dockerComposeFile",
    "service",
    "initializeCommand",
    "overrideCommand",
    "updateRemoteUserUID",
    "remoteUser",
    "workspaceFolder",
    "userEnvProbe",
    "shutdownAction",
)
_SECRET_FILES = re.compile(r"mkdir -m 700 -p secrets && touch -a( secrets/[A-Z0-9_]+)*")
_USERS = {"agentbox": "1000:1000"}


def read_devcontainer(files: Mapping[str, bytes]) -> Grants:
    """`files` are those of the directory that the editor opens. Raises UnknownGrantError for any
    other key: most of them add a mount, a port, a capability or a command.
    """
    document = json.loads(files[".devcontainer.json"])
    require_known(".devcontainer.json", document, _ALLOWED_KEYS)
    if (document["dockerComposeFile"], document["service"]) != ("docker-compose.yml", "agentbox"):
        raise UnknownGrantError(
            "cannot read the grants of a dev container: it does not use the compose file's service",
            "",
        )
    if not _SECRET_FILES.fullmatch(
        document.get("initializeCommand", "mkdir -m 700 -p secrets && touch -a")
    ):
        raise UnknownGrantError(
            "cannot read the grants of a dev container: it runs its own command on the host",
            "",
        )
    if document["updateRemoteUserUID"] is not False or document["overrideCommand"] is not False:
        raise UnknownGrantError(
            "cannot read the grants of a dev container: it builds its own image", ""
        )
    return replace(
        read_compose(files), user=_USERS.get(document["remoteUser"], document["remoteUser"])
    )
