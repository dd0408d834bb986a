# Written by tools/client_operations.py from agentbox/contracts.

"""Sessions of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbox.client.transport import decode, without_none

if TYPE_CHECKING:
    from agentbox.client.async_client.request_sender import AsyncRequestSender
    from agentbox.contracts.logins import Identity, Logins, SignedIn
    from agentbox.contracts.users import LoginCode


class AsyncLoginsClient:
    """Sessions of people. Raises ApiError, BoxUnreachable."""

    def __init__(self, box: AsyncRequestSender) -> None:
        self._box = box

    async def sign_in(self, *, token: str | None = None, code: str | None = None) -> SignedIn:
        """Makes a session from a token or a code: a cookie, and a key for the header Agentbox-
        Session-Key. For pages of this box: 403 for a request of another origin. 429 after 5
        failures within a minute."""
        from agentbox.contracts.logins import SignedIn

        response = await self._box.request(
            "sign_in", body=without_none({"token": token, "code": code})
        )
        return decode(SignedIn, response)

    async def whoami(self) -> Identity:
        """Who the caller is, and until when."""
        from agentbox.contracts.logins import Identity

        response = await self._box.request("whoami")
        return decode(Identity, response)

    async def sign_out(self) -> None:
        """Ends the session that is sent, at once."""
        await self._box.request("sign_out")

    async def make_own_code(self) -> LoginCode:
        """Makes a code with which a page signs in as the caller once, within 60 seconds."""
        from agentbox.contracts.users import LoginCode

        response = await self._box.request("make_own_code")
        return decode(LoginCode, response)

    async def list(self) -> Logins:
        """The caller's sessions; with users:admin those of all."""
        from agentbox.contracts.logins import Logins

        response = await self._box.request("list_logins")
        return decode(Logins, response)

    async def end(self, id: str) -> None:
        """Ends a session of the caller at once; with users:admin any."""
        await self._box.request("end_login", {"id": id})
