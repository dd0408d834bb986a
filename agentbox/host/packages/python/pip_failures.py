"""What pip fails with -> what it means to the operator, and what to do about it. Standard library only."""

import hashlib
import re
import ssl
from typing import Final
from urllib.parse import urlsplit

_CAUSES: Final = (
    (re.compile(r"No space left on device"), "the disk is full"),
    (re.compile(r"name resolution|Failed to establish a new connection|timed out"), "no network: pip reaches no index"),
)
_CONNECT: Final = "Connect, or free some space."
_UNTRUSTED: Final = re.compile(r"Could not fetch URL (\S+?): .*certificate verify failed:? ?([^(\n]*)")
TRUST: Final = "Where your network inspects TLS, set PIP_CERT to the file of its authority; else use another network."
_COMMON_NAME: Final = b"\x06\x03\x55\x04\x03"  # DER of the identifier 2.5.4.3; the issuer comes before the subject
_SHORT_LENGTH: Final = 128
_SECONDS: Final = 10.0


def why(said: str) -> tuple[str, str]:
    """The cause in words, else the last line of pip's that tells of an error; and the remedy."""
    if untrusted := untrusted_certificate(said):
        return untrusted, TRUST
    if known := next((words for found, words in _CAUSES if found.search(said)), ""):
        return known, _CONNECT
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = (line for line in reversed(lines) if "error" in line.lower())
    return next(errors, lines[-1] if lines else "pip was killed"), _CONNECT


def untrusted_certificate(said: str) -> str:
    """Whose certificate was not trusted, why, and which it is; "" when that is not what pip says."""
    if (found := _UNTRUSTED.search(said)) is None:
        return ""
    at = urlsplit(found[1])
    return (
        f"the certificate of {at.netloc} is not trusted ({found[2].strip()}){_which(at.hostname or '', at.port or 443)}"
    )


def _which(host: str, port: int) -> str:
    """Issuer and fingerprint, read without trusting them; "" where no certificate comes."""
    try:
        der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, port), timeout=_SECONDS))
    except (OSError, ValueError):
        return ""
    return f": issued by {_issuer(der) or 'nobody by name'}, SHA-256 {hashlib.sha256(der).hexdigest()}"


def _issuer(der: bytes) -> str:
    at = der.find(_COMMON_NAME) + len(_COMMON_NAME)
    if at < len(_COMMON_NAME) or len(der) < at + 2 or der[at + 1] >= _SHORT_LENGTH:
        return ""
    text = der[at + 2 : at + 2 + der[at + 1]].decode("utf-8", "replace")
    return "".join(one if one.isprintable() else "?" for one in text)
