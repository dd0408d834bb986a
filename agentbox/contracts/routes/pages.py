"""Pages for people, on the API's port. They hold nothing of the box: what they show they ask the API for, with a token."""

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
