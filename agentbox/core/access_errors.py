"""Errors of users and sign-ins."""

from agentbox.core.adapter_error import AdapterError


class LastAdmin(AdapterError):
    """The change would leave the box without a user who is an admin."""

    code, status, names = "last-admin", 409, ("name",)


class CrossSite(AdapterError):
    """A request with a session's cookie that did not come from the box's own page."""

    code, status = "cross-site", 403
