"""The calls of a client to its host, and what their answers mean for the state machine."""

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from agentbox.adapters.runtime.http_connection import is_loopback
from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.transport import Call, base_headers, call_of
from agentbox.contracts.mesh import Beat, BeatAnswer, R, Registered, Registration, known
from agentbox.contracts.mesh_errors import SessionEnded
from agentbox.core.errors import AgentboxError
from agentbox.core.slot_errors import ValidationError

_RETRIED = frozenset({408, 429, 500, 502, 503, 504})


class Lost(Exception):
    """No usable answer: it may be tried again, after `retry_after` seconds where the host said so."""

    def __init__(self, why: str, retry_after: float | None = None) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class Refusal(Exception):
    """The host says no, and why: `code` is that of its problem, `mismatches` the contracts that do not fit."""

    def __init__(self, code: str, why: str, mismatches: tuple[Any, ...] = ()) -> None:
        super().__init__(why)
        self.code, self.mismatches = code, mismatches


class Over(Exception):
    """The session is over. `reason` is the host's word, `unknown` where it does not know the token."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Link:
    """`seconds` is the deadline of each call."""

    def __init__(self, url: str, enrolment: str, *, seconds: float, authority: Path | None = None) -> None:
        self.url, self._enrolment, self._seconds, self._authority = url, enrolment, seconds, authority
        self._client: AsyncBoxClient | None = None

    async def register(self, asked: Registration) -> Registered:
        """Raises Lost, Refusal."""
        return await self._send("mesh_register", asked.to_wire(), self._enrolment, Registered)

    async def beat(self, beat: Beat, token: str) -> BeatAnswer:
        """Raises Lost, Refusal, Over."""
        return await self._send("mesh_heartbeat", beat.to_wire(), token, BeatAnswer)

    async def leave(self, session_id: str, token: str) -> None:
        """Raises Lost, Refusal, Over."""
        call = call_of("mesh_deregister", body={"session_id": session_id}, headers=base_headers(token))
        await self._answer(call)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _send(self, name: str, body: Any, token: str, kind: type[R]) -> R:
        try:
            headers = base_headers(token)
        except AgentboxError as error:
            raise Refusal("unauthenticated", error.message) from None
        answer = await self._answer(call_of(name, body=body, headers=headers))
        try:
            return known(kind, answer.json())
        except (ValueError, ValidationError) as error:
            raise Lost(f"{self.url} answers, but it is no mesh host") from error

    async def _answer(self, call: Call) -> httpx.Response:
        try:
            return await self._made().send(call, wait_s=self._seconds)
        except BoxUnreachable as error:
            raise Lost(error.message) from error
        except ApiError as error:
            raise _meaning(error) from error
        except (OSError, ssl.SSLError) as error:
            raise Lost(f"cannot read the trust anchor: {error}") from error

    def _made(self) -> AsyncBoxClient:
        if self._client is None:
            parts = urlsplit(self.url)
            if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
                raise Refusal("clear-text", "mesh.host_url is plain http to another machine: give it as https")
            context = ssl.create_default_context(cafile=str(self._authority)) if self._authority else True
            self._client = AsyncBoxClient(self.url, transport=httpx.AsyncHTTPTransport(verify=context))
        return self._client


def _meaning(error: ApiError) -> Lost | Refusal | Over:
    if error.status in _RETRIED:
        return Lost(error.message, error.retry_after)
    if error.code == SessionEnded.code:
        return Over(str(error.problem.get("reason") or "unknown"))
    rows = error.problem.get("mismatches")
    return Refusal(error.code or str(error.status), error.message, tuple(rows) if isinstance(rows, list) else ())
