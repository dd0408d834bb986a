"""Files of sandboxes."""

from agentbox.client.async_client.api_caller import AsyncApiCaller
from agentbox.client.pods import OCTETS, AsyncContent
from agentbox.client.transport import build_call


class AsyncSandboxFilesClient:
    """Files of running sandboxes. A path begins with `workspace/` (the branch) or `tmp/` (TMPDIR).
    Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncApiCaller) -> None:
        self._box = box

    async def read(self, sandbox_id: str, path: str) -> bytes:
        """A regular file."""
        call = build_call(
            "read_sandbox_file", {"id": sandbox_id, "path": path}, headers={"Accept": "*/*"}
        )
        return (await self._box.send(call)).content

    async def write(self, sandbox_id: str, path: str, body: AsyncContent) -> None:
        """Creates or replaces a file; missing directories are made. A body other than bytes is
        streamed."""
        call = build_call(
            "write_sandbox_file",
            {"id": sandbox_id, "path": path},
            content=body,
            headers={"Content-Type": OCTETS},
        )
        await self._box.send(call)

    async def remove(self, sandbox_id: str, path: str) -> None:
        """A file, a link or an empty directory."""
        await self._box.send(build_call("remove_sandbox_file", {"id": sandbox_id, "path": path}))
