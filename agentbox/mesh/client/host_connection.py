"""The client's calls to its host, with errors mapped for the state machine."""

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from agentbox.adapters.runtime.http_connection import is_loopback, proxy_to
from agentbox.client.async_client.client import AsyncBoxClient
from agentbox.client.errors import ApiError, BoxUnreachable
from agentbox.client.transport import Call, base_headers, build_call
from agentbox.contracts.mesh import (
    Heartbeat,
    HeartbeatReply,
    R,
    Registered,
    Registration,
    decode_lenient,
)
from agentbox.contracts.mesh_errors import SessionEnded
from agentbox.core.errors import AgentboxError
from agentbox.core.http.reusable_client import ReusableClient
from agentbox.core.slot_errors import ValidationError
from agentbox.policy.outgoing import DIRECT, Outgoing

_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


class HostUnreachable(Exception):
    """No usable response. A retry may succeed, after `retry_after` seconds if the host set it."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class HostRefused(Exception):
    """The host refused. `code`: of its problem document; `mismatches`: incompatible contracts."""

    def __init__(self, code: str, reason: str, mismatches: tuple[Any, ...] = ()) -> None:
        super().__init__(reason)
        self.code, self.mismatches = code, mismatches


class HostSessionEnded(Exception):
    """The session has ended. `reason`: given by the host, `unknown` if it does not know the
    token."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HostConnection:
    """`timeout`: seconds per call."""

    def __init__(
        self,
        url: str,
        enrolment_token: str,
        *,
        timeout: float,
        ca_file: Path | None = None,
        outgoing: Outgoing = DIRECT,
    ) -> None:
        self._outgoing = outgoing
        self.url, self._enrolment_token, self._timeout, self._ca_file = (
            url,
            enrolment_token,
            timeout,
            ca_file,
        )
        self._client = ReusableClient(self._create_client)

    async def register(self, registration: Registration) -> Registered:
        """Raises HostUnreachable, HostRefused."""
        return await self._send(
            "mesh_register", registration.to_wire(), self._enrolment_token, Registered
        )

    async def heartbeat(self, heartbeat: Heartbeat, token: str) -> HeartbeatReply:
        """Raises HostUnreachable, HostRefused, SessionOver."""
        return await self._send("mesh_heartbeat", heartbeat.to_wire(), token, HeartbeatReply)

    async def deregister(self, session_id: str, token: str) -> None:
        """Raises HostUnreachable, HostRefused, SessionOver."""
        call = build_call(
            "mesh_deregister", body={"session_id": session_id}, headers=base_headers(token)
        )
        await self._send_call(call)

    async def close(self) -> None:
        await self._client.close()

    async def _send(self, name: str, body: Any, token: str, record_type: type[R]) -> R:
        try:
            headers = base_headers(token)
        except AgentboxError as error:
            raise HostRefused("unauthenticated", error.message) from None
        response = await self._send_call(build_call(name, body=body, headers=headers))
        try:
            return decode_lenient(record_type, response.json())
        except (ValueError, ValidationError) as error:
            raise HostUnreachable(f"{self.url} is not a mesh host") from error

    async def _send_call(self, call: Call) -> httpx.Response:
        try:
            return await self._client.get().send(call, wait_s=self._timeout)
        except BoxUnreachable as error:
            raise HostUnreachable(error.message) from error
        except ApiError as error:
            raise _to_mesh_error(error) from error
        except (OSError, ssl.SSLError) as error:
            raise HostUnreachable(f"cannot read the CA file: {error}") from error

    def _create_client(self) -> AsyncBoxClient:
        parts = urlsplit(self.url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise HostRefused(
                "clear-text", "mesh.host_url is plain http to another machine: use https"
            )
        transport = httpx.AsyncHTTPTransport(
            verify=self._outgoing.tls(self._ca_file) or True,
            proxy=proxy_to(self.url, self._outgoing),
        )
        return AsyncBoxClient(self.url, transport=transport)


def _to_mesh_error(error: ApiError) -> HostUnreachable | HostRefused | HostSessionEnded:
    if error.status in _RETRIED_STATUSES:
        return HostUnreachable(error.message, error.retry_after)
    if error.code == SessionEnded.code:
        return HostSessionEnded(str(error.problem.get("reason") or "unknown"))
    mismatches = error.problem.get("mismatches")
    return HostRefused(
        error.code or str(error.status),
        error.message,
        tuple(mismatches) if isinstance(mismatches, list) else (),
    )
