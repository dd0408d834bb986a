# Written by tools/sync_client.py from async_client/logins.py.
# Written by tools/client_operations.py from agentbox/contracts.

"""Sessions of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode, without_none

if TYPE_CHECKING:
    from agentbox.client.sync.request_sender import RequestSender
    from agentbox.contracts.logins import Identity, Logins, SignedIn
    from agentbox.contracts.users import LoginCode


class LoginsClient:
    """Sessions of people. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: RequestSender) -> None:
        self._box = box

    def sign_in(self, *, token: str | None = None, code: str | None = None) -> SignedIn:
        """Makes a session from a token or a code: a cookie, and a key for the header Agentbox-
        Session-Key. For pages of this box: 403 for a request of another origin. 429 after 5
        failures within a minute."""
        from agentbox.contracts.logins import SignedIn

        response = self._box.request("sign_in", body=without_none({"token": token, "code": code}))
        return decode(SignedIn, response)

    def whoami(self) -> Identity:
        """Who the caller is, and until when."""
        from agentbox.contracts.logins import Identity

        response = self._box.request("whoami")
        return decode(Identity, response)

    def sign_out(self) -> None:
        """Ends the session that is sent, at once."""
        self._box.request("sign_out")

    def make_own_code(self) -> LoginCode:
        """Makes a code with which a page signs in as the caller once, within 60 seconds."""
        from agentbox.contracts.users import LoginCode

        response = self._box.request("make_own_code")
        return decode(LoginCode, response)

    def list(self) -> Logins:
        """The caller's sessions; with users:admin those of all."""
        from agentbox.contracts.logins import Logins

        response = self._box.request("list_logins")
        return decode(Logins, response)

    def end(self, id: str) -> None:
        """Ends a session of the caller at once; with users:admin any."""
        self._box.request("end_login", {"id": id})
