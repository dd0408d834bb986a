"""One request to the sink of the events, and what its answer means for the records in it (V15, V17)."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx

from agentbox.adapters.runtime.adapter import SlotConfig
from agentbox.adapters.runtime.http_connection import TIMEOUT_SECONDS, transport_to

REFUSED = frozenset({400, 413, 422})
PASSING = frozenset({408, 425, 429})  # with every 5xx: to be sent again as it was
LONGEST_ANSWER = 16 << 10  # bytes read of an answer
LONGEST_REASON = 300
LONGEST_WAIT = 3600.0  # seconds of a Retry-After that are believed
Meaning = Literal["taken", "refused", "unsupported", "again", "held"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`refused`: something in the request is bad. `unsupported`: not in this form. `again`: later, as it was. `held`:
    later too, but a person has to do something first. `wait` is the Retry-After in seconds."""

    meaning: Meaning
    status: int
    reason: str
    wait: float | None = None


class Sink:
    """The address of `adapters.events.endpoint`, which takes CloudEvents by POST."""

    def __init__(self, cfg: SlotConfig) -> None:
        """Raises BackendError for an address that may not be used."""
        self._url, self._cfg = str(cfg.option("endpoint", "")), cfg
        self._seconds = float(cfg.option("timeout_seconds", TIMEOUT_SECONDS))
        token = cfg.secrets.get("token", "")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client: httpx.AsyncClient | None = self._made()

    async def close(self) -> None:
        """May be called again."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def post(self, body: bytes, media_type: str, now: datetime) -> Verdict:
        """Sends it, once, within `timeout_seconds`. Never raises for what the sink does."""
        if self._client is None:
            self._client = self._made()
        try:
            async with asyncio.timeout(self._seconds):
                return await self._posted(self._client, body, media_type, now)
        except TimeoutError:
            reason = f"the sink gave no answer within {self._seconds:g} s"
        except (httpx.TransportError, httpx.InvalidURL) as error:
            reason = f"cannot reach the sink: {type(error).__name__}"
        await self.close()  # the connection is in no known state; the next request makes a new one
        return Verdict("again", 0, reason)

    async def _posted(self, client: httpx.AsyncClient, body: bytes, media_type: str, now: datetime) -> Verdict:
        headers = {**self._headers, "Content-Type": media_type, "Accept": "application/json"}
        async with client.stream("POST", self._url, content=body, headers=headers) as answer:
            text = b""
            async for piece in answer.aiter_bytes():
                text += piece[: LONGEST_ANSWER - len(text)]
                if len(text) >= LONGEST_ANSWER:
                    break
            wait = _wait(answer.headers, now)
            return Verdict(_meaning(answer.status_code), answer.status_code, _reason(answer.status_code, text), wait)

    def _made(self) -> httpx.AsyncClient:
        transport = transport_to(self._cfg, self._url, kept=1)
        return httpx.AsyncClient(transport=transport, timeout=self._seconds, trust_env=False)


def _meaning(status: int) -> Meaning:
    if 200 <= status < 300:
        return "taken"
    if status in REFUSED:
        return "refused"
    if status == httpx.codes.UNSUPPORTED_MEDIA_TYPE:
        return "unsupported"
    return "again" if status in PASSING or status >= 500 else "held"


def _wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Retry-After, as seconds or as a date (RFC 9110, 10.2.3); None where there is none that can be read."""
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdecimal():
        return min(float(text), LONGEST_WAIT)
    try:
        left = (parsedate_to_datetime(text) - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return min(max(0.0, left), LONGEST_WAIT)


def _reason(status: int, text: bytes) -> str:
    """The sentence of a problem document, else the number alone: another body may repeat what it was sent."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    detail = found.get("detail") if isinstance(found, dict) else None
    said = f": {detail}" if isinstance(detail, str) else ""
    return f"the sink answers {status}{said}"[:LONGEST_REASON]
