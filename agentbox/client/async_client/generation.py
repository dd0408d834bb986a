# Written by tools/client_operations.py from agentbox/contracts.

"""The generation that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.generation import GenerationState, Trial


class AsyncGenerationClient:
    """The generation that runs. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def show(self) -> GenerationState:
        """Whether the box is held, and what its stores contain."""
        from agentbox.contracts.generation import GenerationState

        response = await self._box.request("show_generation")
        return decode(GenerationState, response)

    async def release(self) -> GenerationState:
        """Ends a held start: writes, agents, tasks, the mesh and deliveries begin. Nothing changes
        in a box that is not held."""
        from agentbox.contracts.generation import GenerationState

        response = await self._box.request("release_generation")
        return decode(GenerationState, response)

    async def try_agent(self) -> Trial:
        """Starts an agent of the default profile that runs `true`, and waits for its end; a held
        box does this too."""
        from agentbox.contracts.generation import Trial

        response = await self._box.request("try_agent", wait_s=60)
        return decode(Trial, response)
