"""Certificates of authorities as PEM. Standard library only: the boot, and the making of the Python
environment before anything is installed, use this.
"""

import ssl
from pathlib import Path

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import SYSTEM_ROOTS

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def read_certificates(path: Path, origin: str) -> str:
    """The certificates of a PEM file, nothing else of it: a key in the same file stays there.

    `origin` names what the operator wrote. Raises AgentboxError (exit 3) if it cannot be read, has
    no CERTIFICATE, or one that is none.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise _unusable(path, origin, error.strerror or str(error)) from error
    blocks = [
        f"{_BEGIN}{block.partition(_END)[0]}{_END}\n"
        for block in text.split(_BEGIN)[1:]
        if _END in block
    ]
    if not blocks:
        raise _unusable(path, origin, "it has no CERTIFICATE")
    try:
        ssl.create_default_context(cadata="".join(blocks))
    except (ssl.SSLError, ValueError) as error:
        raise _unusable(path, origin, "a CERTIFICATE in it cannot be read") from error
    return "".join(blocks)


def system_roots() -> str:
    """The authorities that this system trusts, as PEM; "" if it has none."""
    configured = ssl.get_default_verify_paths().cafile
    for name in (*([configured] if configured else ()), *SYSTEM_ROOTS):
        if Path(name).is_file():
            text = Path(name).read_text(encoding="utf-8", errors="replace")
            return text if text.endswith("\n") else f"{text}\n"
    return ""


def _unusable(path: Path, origin: str, why: str) -> AgentboxError:
    return AgentboxError(
        f"cannot use {origin} {path}: {why}",
        "Give a file in PEM form with the certificate of your network's authority.",
        exit_code=ExitCode.PREREQUISITE,
    )
