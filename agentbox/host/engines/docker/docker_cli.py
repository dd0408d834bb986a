"""Calls of the docker client and of compose; errors are mapped to a message and an exit code by
cause.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from agentbox.core.errors import AgentboxError, ExitCode, describe_exit
from agentbox.host.engines.command import run
from agentbox.host.engines.docker import daemon_status

_PORT_TAKEN: Final = re.compile(
    r"(?:bind for|listen tcp\d?)[^\n]*?:(?P<port>\d+)[^\n]*(?:allocated|in use)", re.IGNORECASE
)
_ADDRESS_MISSING: Final = re.compile(
    r"listen tcp\d? \[?(?P<address>[^]\s]+?)\]?:\d+: bind: cannot assign requested address"
)
_DISK_FULL: Final = "no space left on device"
_NAME_TAKEN: Final = re.compile(
    r"The container name \"?/?(?P<name>[^\"]+)\"? is already in use", re.IGNORECASE
)


def docker(
    arguments: Sequence[str], *, doing: str, timeout: float = 300, uninterruptible: bool = False
) -> str:
    """Runs the docker client and returns its stdout. Raises AgentboxError as `explain_errors`."""
    return explain_errors(
        lambda: run(
            ["docker", *arguments], doing=doing, timeout=timeout, uninterruptible=uninterruptible
        ),
        doing,
    )


def explain_errors(call: Callable[[], str], doing: str) -> str:
    """Runs `call` and replaces its error by one with the cause: daemon not running, port or name in
    use (exit 7), address not on this host (exit 3), disk full; else unchanged (exit 6).
    """
    try:
        return call()
    except AgentboxError as error:
        if error.exit_code is not ExitCode.ENGINE:
            raise
        if (status := daemon_status.query_status()).state != "answers":
            raise daemon_status.unreachable_error(doing, status) from error
        raise _explain(error, doing) from error


def _explain(error: AgentboxError, doing: str) -> AgentboxError:
    text = error.message
    if match := _PORT_TAKEN.search(text):
        return AgentboxError(
            f"cannot {doing}: port {match['port']} is already in use on this host",
            "Stop the program that listens there, or give this box another port in the manifest.",
            exit_code=ExitCode.BUSY,
        )
    if match := _ADDRESS_MISSING.search(text):
        return AgentboxError(
            f"cannot {doing}: this host has no address {match['address']}",
            "Fix publish_address in the manifest: 127.0.0.1, or an address that `ip address` "
            "lists.",
            exit_code=ExitCode.PREREQUISITE,
        )
    if match := _NAME_TAKEN.search(text):
        return AgentboxError(
            f"cannot {doing}: a container named {match['name']} already exists",
            "Remove that container, or give this box another name in the manifest.",
            exit_code=ExitCode.BUSY,
        )
    if _DISK_FULL in text.lower():
        return AgentboxError(
            f"cannot {doing}: the disk of the docker daemon is full",
            "`docker system df` shows disk usage, `docker image prune` removes unused images. "
            "Then run up again.",
            exit_code=ExitCode.ENGINE,
        )
    return error


def stream_lines(arguments: Sequence[str], *, doing: str) -> Iterator[str]:
    """Yield lines of the client's stdout and stderr. Raises AgentboxError (exit 6) if it fails."""
    process = subprocess.Popen(
        ["docker", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    last = ""
    try:
        for line in process.stdout:
            last = line.rstrip("\n")
            yield last
        code = process.wait()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    if code != 0:
        raise AgentboxError(
            f"cannot {doing}: {last or describe_exit(code)}", exit_code=ExitCode.ENGINE
        )
