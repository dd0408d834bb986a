"""The one HTTP route table, shared by the server, the clients and the reference pages."""

from agentbox.routes.match import Match, Matcher
from agentbox.routes.route import Route
from agentbox.routes.table import BY_NAME, ROUTES, SCOPES

__all__ = ["BY_NAME", "ROUTES", "SCOPES", "Match", "Matcher", "Route"]
