"""The identity of this box at a host: an id and a secret in `mesh/instance` on the state volume."""

import os
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from agentbox.contracts.mesh import SECRET_BYTES
from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic import read_json, replace_json

FILE = "instance"


@dataclass(frozen=True)
class InstanceIdentity:
    """`id`: a public UUID; `secret`: 32 random bytes."""

    id: str
    secret: bytes = field(repr=False)


def load_or_create(directory: Path) -> InstanceIdentity:
    """Loads the instance, or creates it (0600). Raises AgentboxError if the file is invalid or
    cannot be written."""
    path = directory / FILE
    try:
        stored = read_json(path)
        if stored is not None:
            return InstanceIdentity(str(stored["id"]), b64decode(stored["secret"], validate=True))
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        instance = InstanceIdentity(str(uuid4()), os.urandom(SECRET_BYTES))
        replace_json(
            path,
            {"id": instance.id, "secret": b64encode(instance.secret).decode("ascii")},
            mode=0o600,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AgentboxError(
            f"cannot read or create {path}: {error}",
            "Remove the file to join as a new box, and check that the disk is not full.",
        ) from error
    return instance
