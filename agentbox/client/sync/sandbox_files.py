# Written by tools/sync_client.py from async_client/sandbox_files.py.
"""Files of sandboxes."""

from agentbox.client.pods import OCTETS, Content
from agentbox.client.sync.api_caller import ApiCaller
from agentbox.client.transport import build_call


class SandboxFilesClient:
    """Files of running sandboxes. A path begins with `workspace/` (the branch) or `tmp/` (TMPDIR).
    Raises ApiError, BoxUnreachable."""

    def __init__(self, box: ApiCaller) -> None:
        self._box = box

    def read(self, sandbox_id: str, path: str) -> bytes:
        """A regular file."""
        call = build_call(
            "read_sandbox_file", {"id": sandbox_id, "path": path}, headers={"Accept": "*/*"}
        )
        return (self._box.send(call)).content

    def write(self, sandbox_id: str, path: str, body: Content) -> None:
        """Creates or replaces a file; missing directories are made. A body other than bytes is
        streamed."""
        call = build_call(
            "write_sandbox_file",
            {"id": sandbox_id, "path": path},
            content=body,
            headers={"Content-Type": OCTETS},
        )
        self._box.send(call)

    def remove(self, sandbox_id: str, path: str) -> None:
        """A file, a link or an empty directory."""
        self._box.send(build_call("remove_sandbox_file", {"id": sandbox_id, "path": path}))
