"""Downloads the files that a box makes of commits, and checks them against the review."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from agentbox.client.transport import Call, build_call
from agentbox.core.errors import AgentboxError
from agentbox.core.files.atomic_text import wrap_os_errors

if TYPE_CHECKING:
    from agentbox.client import BoxClient
    from agentbox.contracts.review_commits import CommitsSummary

OPERATIONS: Final[Mapping[str, str]] = {
    "bundle": "read_review_bundle",
    "patches": "read_review_patches",
}


def download(
    client: BoxClient, summary: CommitsSummary, kind: str, target: Path, *, rest: bool
) -> int:
    """Write the file to a new path or replace it; its size. Raises AgentboxError, also if it is not
    the file that the review is about."""
    name = f"rest-{kind}" if rest else kind
    expected = summary.files.get(name)
    call = build_call(
        OPERATIONS[kind],
        {"agent_id": summary.agent_id},
        query={"rest": rest},
        headers={"Accept": "*/*"},
    )
    partial = target.with_name(f".{target.name}.part")
    with wrap_os_errors(f"write {target}"):
        with partial.open("xb") as out:
            pass
        try:
            with partial.open("wb") as out:
                digest = _copy(client, call, out)
            if expected is None or digest != expected.sha256:
                raise AgentboxError(
                    f"cannot use the {kind} of {summary.agent_id}: it is not that of the review",
                    "Try again.",
                )
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    return expected.size


def _copy(client: BoxClient, call: Call, out: IO[bytes]) -> str:
    digest = hashlib.sha256()
    with client.streaming(call) as response:
        for chunk in response.iter_bytes():
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest()
