"""Passwords of the programs of features: the operator's, else one generated at the first boot.
Standard library only.
"""

import secrets

from agentbox.box.supervision.secrets import (
    Source,
    is_placeholder,
    read_secret,
    read_text,
    store_secret,
)
from agentbox.core.files.atomic import replace
from agentbox.core.paths import Paths
from agentbox.plan.model import Password

_BYTES = 24  # 192 bits; a protocol that reads only eight characters (RFB 6.2) still gets 48

_REMOVE = "Remove that file: the next boot makes a new one."


def provide_password(paths: Paths, password: Password) -> Source:
    """Writes `/run/agentbox/secrets/<file>` for this boot (0400) and returns the source of its
    value.

    It is never empty: without an operator's value it is the one in the state volume (0600), which
    is generated when it is missing, empty or a placeholder. Raises AgentboxError for a secret that
    cannot be read, OSError.
    """
    if password.secret and (secret := read_secret(paths, password.secret)):
        store_secret(paths, password.file, secret[0])
        return secret[1]
    path = paths.state_secrets / password.file
    value = read_text(path, f"the password {path}", _REMOVE) if path.exists() else ""
    source: Source = "file"
    if not value or is_placeholder(value):
        paths.state_secrets.mkdir(mode=0o700, parents=True, exist_ok=True)
        value, source = secrets.token_urlsafe(_BYTES), "generated"
        replace(path, value.encode(), mode=0o600)
    store_secret(paths, password.file, value)
    return source
