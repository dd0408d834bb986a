"""Maps errors of pip to their cause and a remedy. Standard library only."""

import hashlib
import re
import ssl
from typing import Final
from urllib.parse import urlsplit

_CAUSES: Final = (
    (re.compile(r"No space left on device"), "the disk is full"),
    (
        re.compile(r"name resolution|Failed to establish a new connection|timed out"),
        "no network: pip cannot reach an index",
    ),
)
_CONNECT: Final = "Connect to the network, or free some space."
_UNTRUSTED: Final = re.compile(
    r"Could not fetch URL (\S+?): .*certificate verify failed:? ?([^(\n]*)"
)
TRUST: Final = (
    "If your network inspects TLS, set PIP_CERT to the certificate of its authority, or use "
    "another network."
)
_COMMON_NAME: Final = (
    b"\x06\x03\x55\x04\x03"  # DER of the identifier 2.5.4.3; the issuer comes before the subject
)
_SHORT_LENGTH: Final = 128
_SECONDS: Final = 10.0


def explain_failure(output: str) -> tuple[str, str]:
    """Return the cause, else pip's last line with an error, and the remedy."""
    if untrusted := untrusted_certificate(output):
        return untrusted, TRUST
    if cause := next((text for pattern, text in _CAUSES if pattern.search(output)), ""):
        return cause, _CONNECT
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = (line for line in reversed(lines) if "error" in line.lower())
    return next(errors, lines[-1] if lines else "pip was killed"), _CONNECT


def untrusted_certificate(output: str) -> str:
    """Return which certificate was not trusted and why; "" if pip reports another error."""
    if (match := _UNTRUSTED.search(output)) is None:
        return ""
    url = urlsplit(match[1])
    certificate = _describe_certificate(url.hostname or "", url.port or 443)
    return f"the certificate of {url.netloc} is not trusted ({match[2].strip()}){certificate}"


def _describe_certificate(host: str, port: int) -> str:
    """Return issuer and fingerprint, read without trusting them; "" if there is no certificate."""
    try:
        der = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, port), timeout=_SECONDS))
    except (OSError, ValueError):
        return ""
    return f": issued by {_issuer(der) or 'unknown'}, SHA-256 {hashlib.sha256(der).hexdigest()}"


def _issuer(der: bytes) -> str:
    offset = der.find(_COMMON_NAME) + len(_COMMON_NAME)
    if offset < len(_COMMON_NAME) or len(der) < offset + 2 or der[offset + 1] >= _SHORT_LENGTH:
        return ""
    text = der[offset + 2 : offset + 2 + der[offset + 1]].decode("utf-8", "replace")
    return "".join(character if character.isprintable() else "?" for character in text)
