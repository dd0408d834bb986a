# Written by tools/sync_client.py from async_client/users.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""People who operate the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode

if TYPE_CHECKING:
    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.users import LoginCode, User, Users


class UsersClient:
    """People who operate the box. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def list(self) -> Users:
        """Users with their roles, by name."""
        from agentbox.contracts.users import Users

        response = self._box.request("list_users")
        return decode(Users, response)

    def add(self, name: str, role: str) -> User:
        """Adds a user with a role. 409 for a name that any user has had; 507 beyond 1,000."""
        from agentbox.contracts.users import User

        response = self._box.request("add_user", body={"name": name, "role": role})
        return decode(User, response)

    def set_role(self, name: str, role: str) -> User:
        """Gives a user another role, at once. 409 for the last admin."""
        from agentbox.contracts.users import User

        response = self._box.request("set_user_role", {"name": name}, body={"role": role})
        return decode(User, response)

    def disable(self, name: str) -> User:
        """Ends a user's tokens, sessions and open streams, at once; no other user gets the name.
        409 for the last admin."""
        from agentbox.contracts.users import User

        response = self._box.request("disable_user", {"name": name})
        return decode(User, response)

    def enable(self, name: str) -> User:
        """Lets a disabled user sign in again. Tokens and sessions do not come back."""
        from agentbox.contracts.users import User

        response = self._box.request("enable_user", {"name": name})
        return decode(User, response)

    def make_code(self, name: str) -> LoginCode:
        """Makes a code with which the user signs in once, within 15 minutes. An earlier code of the
        user ends."""
        from agentbox.contracts.users import LoginCode

        response = self._box.request("make_login_code", {"name": name})
        return decode(LoginCode, response)
