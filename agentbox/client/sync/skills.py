# Written by tools/sync_client.py from async_client/skills.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""The skills of the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.skills import Skills


class SkillsClient:
    """The skills of the image. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def list(self) -> Skills:
        """The skills of the image, with their files and the agents that are told of them."""
        from agentbox.contracts.skills import Skills

        response = self._box.request("list_skills")
        return decode(Skills, response)
