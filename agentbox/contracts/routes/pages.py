"""HTML pages on the API's port. They contain no data of the box; they request it from the API, with
a token.
"""

from agentbox.contracts.routes.route import Route

PAGES: tuple[Route, ...] = (
    Route(
        name="page",
        method="GET",
        path="/ui/{name}",
        scope=(),
        handler="pages.serve",
        response="Body",
        media="any",
        summary="A page, or its script or style.",
    ),
)
