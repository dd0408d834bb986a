"""Pages of agentbox.api.pages over HTTP."""

from starlette.responses import Response

from agentbox.api.pages.pages import POLICY, read_page
from agentbox.core.http.responses import header_list
from agentbox.core.slot_errors import NotFound


class PageHandlers:
    """The HTML pages. They contain no data of the box."""

    async def serve(self, name: str) -> Response:
        """Unknown names are 404."""
        if (content := read_page(name)) is None:
            raise NotFound("cannot find this page", resource="page", id=name)
        body, media_type = content
        headers = header_list(
            ("Content-Security-Policy", POLICY), ("Cross-Origin-Opener-Policy", "same-origin")
        )
        return Response(body, headers=headers, media_type=media_type)
