"""Passwords of features' programs: the operator's, else one made at the first boot and kept. Standard library only."""

import secrets

from agentbox.box.supervision.secrets import Source, is_placeholder, read_secret, store_secret, text_of
from agentbox.core.files.atomic import replace
from agentbox.core.paths import Paths
from agentbox.plan.model import Password

_BYTES = 24  # 192 bits; a protocol that reads only eight characters (RFB 6.2) still gets 48

_REMOVE = "Remove that file: the next boot makes a new one."


def lay(paths: Paths, wanted: Password) -> Source:
    """Writes `/run/agentbox/secrets/<file>` for this boot (0400) and says where its value came from.

    Never empty: without an operator's value it is the one kept in the state volume (0600), which is made when it is
    missing, empty or a placeholder. Raises AgentboxError for a secret that cannot be read, OSError.
    """
    if wanted.secret and (found := read_secret(paths, wanted.secret)):
        store_secret(paths, wanted.file, found[0])
        return found[1]
    kept = paths.state_secrets / wanted.file
    value = text_of(kept, f"the password {kept}", _REMOVE) if kept.exists() else ""
    source: Source = "file"
    if not value or is_placeholder(value):
        paths.state_secrets.mkdir(mode=0o700, parents=True, exist_ok=True)
        value, source = secrets.token_urlsafe(_BYTES), "generated"
        replace(kept, value.encode(), mode=0o600)
    store_secret(paths, wanted.file, value)
    return source
