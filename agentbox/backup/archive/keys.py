"""Recipients and identities of age: X25519, and ssh-ed25519. An identity is read from a file or
from stdin, and is in no message.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

import pyrage

from agentbox.backup.errors import IDENTITY, NO_RECIPIENTS, BackupError
from agentbox.core.errors import ExitCode

_SECRET_KEY: Final = re.compile(r"AGE-SECRET-KEY-1[A-Z0-9]{58}")
_PEM: Final = b"-----BEGIN OPENSSH PRIVATE KEY-----"


def parse_recipients(texts: Sequence[str]) -> list[Any]:
    """Public keys for pyrage. Raises BackupError (exit 2) for none, and for what is not a key."""
    if not texts:
        raise BackupError(
            NO_RECIPIENTS,
            "cannot back up: nobody could read it",
            "Run `agentbox backup init`.",
            exit_code=ExitCode.USAGE,
        )
    return [_recipient(text) for text in texts]


def _recipient(text: str) -> Any:
    try:
        if text.startswith("ssh-"):
            return pyrage.ssh.Recipient.from_str(" ".join(text.split()[:2]))
        return pyrage.x25519.Recipient.from_str(text.strip())
    except pyrage.RecipientError as error:
        raise BackupError(
            NO_RECIPIENTS,
            f"cannot encrypt to {text}: {error}",
            "A recipient is a public key: age1..., or ssh-ed25519 ....",
            exit_code=ExitCode.USAGE,
        ) from error


def new_identity() -> tuple[str, str]:
    """A new secret key and its recipient, as text."""
    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def parse_identities(data: bytes, source: str) -> list[Any]:
    """The identities of a file as `age-keygen` or `ssh-keygen` writes it. `source` names it in
    messages. Raises BackupError (exit 2).
    """
    try:
        if data.lstrip().startswith(_PEM):
            return [pyrage.ssh.Identity.from_buffer(data)]
        lines = [line.strip() for line in data.decode().splitlines()]
        keys = [line for line in lines if line and not line.startswith("#")]
        found = [pyrage.x25519.Identity.from_str(key) for key in keys if _SECRET_KEY.fullmatch(key)]
    except (pyrage.IdentityError, UnicodeDecodeError):
        keys, found = [], []
    if not found or len(found) != len(keys):
        raise BackupError(
            IDENTITY,
            f"cannot read an identity from {source}: it holds no secret key of age and no "
            "unencrypted private key ssh-ed25519",
            "Give the recovery sheet that `agentbox backup init` printed: a line that begins "
            "with AGE-SECRET-KEY-1.",
            exit_code=ExitCode.USAGE,
        )
    return found


def wrong_identity(snapshot: str, recipients: int, *, given: bool) -> BackupError:
    """For a snapshot that no given identity opens."""
    keys = f"{recipients} recipient{'' if recipients == 1 else 's'}"
    why = "no given identity belongs to one of them" if given else "no identity was given"
    return BackupError(
        IDENTITY,
        f"cannot read snapshot {snapshot}: it was encrypted to {keys}, and {why}",
        "Give the identity in a file, or on stdin: --identity FILE or --identity -",
        exit_code=ExitCode.USAGE,
    )
