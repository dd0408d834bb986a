"""Maps errors of pip to their cause and a remedy. Standard library only."""

import re
import sys
from typing import Final

from agentbox.host.network.diagnosis import Cause, diagnose
from agentbox.host.packages.python.pip_config import pip_config

_DISK_FULL: Final = re.compile(r"No space left on device")
_NO_NETWORK: Final = re.compile(r"name resolution|Failed to establish a new connection|timed out")
_CONNECT: Final = "Connect to the network, or free some space."


def explain_failure(output: str, python: str = sys.executable) -> tuple[str, str]:
    """Return the cause, else pip's last line with an error, and the remedy. `python` is the one
    whose pip failed.
    """
    if _DISK_FULL.search(output):
        return "the disk is full", _CONNECT
    if cause := cause_at_index(python):
        return cause.why, cause.hint
    if _NO_NETWORK.search(output):
        return "no network: pip cannot reach an index", _CONNECT
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = (line for line in reversed(lines) if "error" in line.lower())
    return next(errors, lines[-1] if lines else "pip was killed"), _CONNECT


def cause_at_index(python: str = sys.executable) -> Cause | None:
    """What a certificate or a proxy has to do with it: the index is asked once more. pip itself
    reports that it found no matching distribution.
    """
    config = pip_config(python)
    return diagnose(
        config.index_url,
        bundle=config.settings.get("cert", ""),
        proxy=config.settings.get("proxy", ""),
    )
