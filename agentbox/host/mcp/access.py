"""The token of the server: it can neither decide reviews and approvals nor administer the box. The
server never has the admin token: another process reads that, and creates this one.
"""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio

from agentbox.client import AsyncBoxClient
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.core.paths import CHECKOUT

TOKEN_NAME: Final = "mcp"
"""All servers of a box are one principal: the state of a name is the same in the next session."""
SCOPES: Final = (
    *("agents:read", "agents:write", "beads:read", "beads:write"),
    *("memory:read", "pods:read", "events:read"),
)
REVIEWS: Final = "reviews:write"
_REVOKE_SECONDS: Final = 10.0
_EXPIRES: Final = "30d"  # a server that was killed leaves its token behind


def create_token(manifest: Path, *, may_commit_reviews: bool) -> str:
    """A new token of the box of that manifest, by `agentbox token create`. Ends with the exit code
    and the report of that command if it fails.
    """
    scopes = (*SCOPES, REVIEWS) if may_commit_reviews else SCOPES
    command = (sys.executable, "-m", "agentbox", "--manifest", str(manifest.resolve()))
    options = [word for scope in scopes for word in ("--scope", scope)]
    created = subprocess.run(
        (*command, "token", "create", TOKEN_NAME, "--expires", _EXPIRES, *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        check=False,
    )
    if created.returncode != 0:
        sys.stderr.write(created.stderr)
        sys.exit(created.returncode)
    return created.stdout.strip()


@asynccontextmanager
async def open_box(url: str, token: str) -> AsyncIterator[AsyncBoxClient]:
    """A client with that token, which is revoked at the end by itself."""
    try:
        async with AsyncBoxClient(url, token=token) as box:
            yield box
    finally:
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _REVOKE_SECONDS):
            async with AsyncBoxClient(url, token=token) as own:
                with suppress(ApiError, BoxUnreachable):  # the box may be down by now
                    await own.tokens.revoke_self()
