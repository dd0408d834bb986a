# Written by tools/client_operations.py from agentbox/contracts.

"""The skills of the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.skills import Skills


class AsyncSkillsClient:
    """The skills of the image. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def list(self) -> Skills:
        """The skills of the image, with their files and the agents that are told of them."""
        from agentbox.contracts.skills import Skills

        response = await self._box.request("list_skills")
        return decode(Skills, response)
