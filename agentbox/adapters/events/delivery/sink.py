"""One request to the event sink, and the outcome for its records (V15, V17)."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.adapters.runtime.http_connection import create_transport
from agentbox.core.http.reusable_client import ReusableClient
from agentbox.manifest.slot_options import HttpOptions

REJECTED_STATUSES = frozenset({400, 413, 422})
RETRYABLE_STATUSES = frozenset({408, 425, 429})  # and every 5xx: retried unchanged
MAX_ANSWER_BYTES = 16 << 10  # bytes read of a response
MAX_REASON_LENGTH = 300
MAX_RETRY_AFTER = 3600.0  # seconds; the maximum accepted Retry-After
OutcomeKind = Literal["taken", "refused", "unsupported", "again", "held"]


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """`refused`: the request is invalid. `unsupported`: the sink does not accept this format.
    `again`: retry unchanged. `held`: retry, but an operator must act first. `retry_after` is in
    seconds."""

    kind: OutcomeKind
    status: int
    reason: str
    retry_after: float | None = None


class Sink:
    """The address `adapters.events.endpoint`, which accepts CloudEvents by POST."""

    def __init__(self, cfg: SlotConfig[HttpOptions]) -> None:
        """Raises BackendError if the address is not allowed."""
        self._url, self._cfg = cfg.options.endpoint, cfg
        self._seconds = cfg.options.timeout_seconds
        token = cfg.secrets.get("token", "")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = ReusableClient(self._create_client)
        self._client.get()

    async def close(self) -> None:
        """Idempotent."""
        await self._client.close()

    async def post(self, body: bytes, media_type: str, now: datetime) -> DeliveryOutcome:
        """Send the body once within `timeout_seconds`. Never raises for errors of the sink."""
        client = self._client.get()
        try:
            async with asyncio.timeout(self._seconds):
                return await self._exchange(client, body, media_type, now)
        except TimeoutError:
            reason = f"the sink did not respond within {self._seconds:g} s"
        except (httpx.TransportError, httpx.InvalidURL) as error:
            reason = f"cannot reach the sink: {type(error).__name__}"
        # the state of the connection is unknown; the next request opens a new one
        await self.close()
        return DeliveryOutcome("again", 0, reason)

    async def _exchange(
        self, client: httpx.AsyncClient, body: bytes, media_type: str, now: datetime
    ) -> DeliveryOutcome:
        headers = {**self._headers, "Content-Type": media_type, "Accept": "application/json"}
        async with client.stream("POST", self._url, content=body, headers=headers) as response:
            text = b""
            async for chunk in response.aiter_bytes():
                text += chunk[: MAX_ANSWER_BYTES - len(text)]
                if len(text) >= MAX_ANSWER_BYTES:
                    break
            retry_after = _parse_retry_after(response.headers, now)
            return DeliveryOutcome(
                _outcome_kind(response.status_code),
                response.status_code,
                _problem_reason(response.status_code, text),
                retry_after,
            )

    def _create_client(self) -> httpx.AsyncClient:
        transport = create_transport(self._cfg, self._url, max_idle=1)
        return httpx.AsyncClient(transport=transport, timeout=self._seconds, trust_env=False)


def _outcome_kind(status: int) -> OutcomeKind:
    if 200 <= status < 300:
        return "taken"
    if status in REJECTED_STATUSES:
        return "refused"
    if status == httpx.codes.UNSUPPORTED_MEDIA_TYPE:
        return "unsupported"
    return "again" if status in RETRYABLE_STATUSES or status >= 500 else "held"


def _parse_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Parse Retry-After, seconds or a date (RFC 9110, 10.2.3); None if absent or invalid."""
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdecimal():
        return min(float(text), MAX_RETRY_AFTER)
    try:
        remaining = (parsedate_to_datetime(text) - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(0.0, remaining), MAX_RETRY_AFTER)


def _problem_reason(status: int, text: bytes) -> str:
    """Return the detail of a problem document, else only the status: other bodies may echo the
    request."""
    try:
        problem = json.loads(text)
    except (ValueError, RecursionError):
        problem = None
    detail = problem.get("detail") if isinstance(problem, dict) else None
    suffix = f": {detail}" if isinstance(detail, str) else ""
    return f"the sink responded {status}{suffix}"[:MAX_REASON_LENGTH]
