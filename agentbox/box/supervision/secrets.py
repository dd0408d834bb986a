"""Secrets inside the box: files in `/run/secrets`, then `/run/agentbox/secrets`. Standard library
only.
"""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic import replace
from agentbox.core.paths import Paths
from agentbox.plan.model import Plan
from agentbox.plan.names import LEGACY_TOKEN

SUPERVISOR_USER = "agentbox"  # of supervisord's socket; the password is its token
# Common placeholders in templates (rule E018); the whole value, ignoring case.
_PLACEHOLDER = re.compile(
    r"change-me|change-this.*|your-.*-here|placeholder|todo.*|replace-me|xxx.*|<.*>",
    re.IGNORECASE | re.DOTALL,
)

Source = Literal["secret", "env", "file", "generated"]


@dataclass(frozen=True)
class AdminToken:
    """The first admin token of the API and its source."""

    value: str
    source: Source


def read_secret(paths: Paths, name: str) -> tuple[str, Source] | None:
    """The value of a secret and its source; None while it is unset: no file, an empty one, or a
    known placeholder.

    Raises AgentboxError for a file that cannot be read.
    """
    for directory, source in ((paths.mounted_secrets, "secret"), (paths.moved_secrets, "env")):
        try:
            value = read_text(directory / name, f"secret {name}")
        except FileNotFoundError:
            continue
        if value and not is_placeholder(value):
            return value, "secret" if source == "secret" else "env"
    return None


def read_text(
    path: Path, name: str, hint: str = "Give uid 1000 a text file, or remove the secret."
) -> str:
    """The content of a secret file without surrounding blanks. Raises FileNotFoundError, and
    AgentboxError without any of the content when the file cannot be read or is not text.
    """
    try:
        return path.read_bytes().decode().strip()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise AgentboxError(f"cannot read {name}: {error.strerror}", hint) from None
    except UnicodeDecodeError:
        raise AgentboxError(f"cannot read {name}: it is not valid UTF-8", hint) from None


def is_placeholder(value: str) -> bool:
    """True for a value that is a known placeholder."""
    return _PLACEHOLDER.fullmatch(value) is not None


def store_secret(paths: Paths, name: str, value: str) -> None:
    """Stores a secret from the environment, mode 0400, also one that is not text, which its reader
    reports. Raises OSError.
    """
    paths.moved_secrets.mkdir(mode=0o700, exist_ok=True)
    replace(
        paths.moved_secrets / name,
        value.encode("utf-8", "surrogateescape"),
        mode=0o400,
        durable=False,
    )


def find_token(paths: Paths, plan: Plan) -> AdminToken | None:
    """`api.token_env` as a secret, then `MANAGEMENT_API_KEY`, then the key file. None before phase
    2 has generated one.
    """
    for name in (plan.api.token_env, LEGACY_TOKEN):
        if name and (secret := read_secret(paths, name)):
            return AdminToken(*secret)
    return _stored_token(paths)


def _stored_token(paths: Paths) -> AdminToken | None:
    hint = "Remove secrets/mgmt-key from the state volume to get a new one."
    try:
        value = read_text(paths.api_key, "the API key file", hint)
    except FileNotFoundError:
        return None
    return None if not value or is_placeholder(value) else AdminToken(value, "file")


def make_token(paths: Paths) -> AdminToken:
    """Generates the key file: 32 random bytes as hex, mode 0600, durable. Raises OSError."""
    paths.state_secrets.mkdir(mode=0o700, parents=True, exist_ok=True)
    value = secrets.token_hex(32)
    replace(paths.api_key, value.encode(), mode=0o600)
    return AdminToken(value, "generated")


def write_program_token(paths: Paths, program: str) -> str:
    """Generates the token of a program for this boot, in its file, mode 0400."""
    value = secrets.token_hex(32)
    path = paths.token(program)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(value)
    return value


def visible_environment(paths: Paths, env: Mapping[str, str]) -> dict[str, str]:
    """The environment plus every mounted secret, as input of the rules marked [env]."""
    names = (
        [path.name for path in paths.mounted_secrets.iterdir()]
        if paths.mounted_secrets.is_dir()
        else []
    )
    values = {name: secret[0] for name in names if (secret := read_secret(paths, name))}
    return {**env, **values}
