"""One chat, through the Bot API over HTTPS (core.telegram.org/bots/api, method sendMessage)."""

import time
from collections.abc import Callable
from typing import Any, Final

import httpx
import structlog

from agentbox.adapters.runtime.http_connection import proxy_to
from agentbox.core.errors import AgentboxError
from agentbox.policy.outgoing import DIRECT, Outgoing

API: Final = "https://api.telegram.org"
MAX_LENGTH: Final = 4096  # characters of one message
_PAUSE_SECONDS: Final = 1.0  # the service accepts about one message per second in a chat
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_TIMEOUT_SECONDS: Final = 20.0
log = structlog.get_logger()


class ChatRefused(AgentboxError):
    """The service permanently rejects messages: the credentials or the chat are wrong."""


class ChatSender:
    """Sends plain text, in order, repeating each message until the service accepts it."""

    def __init__(
        self,
        token: str,
        chat: str,
        *,
        api: str = API,
        sleep: Callable[[float], None] = time.sleep,
        outgoing: Outgoing = DIRECT,
    ) -> None:
        self._url, self._chat, self._sleep = f"{api}/bot{token}/sendMessage", chat, sleep
        self._http = httpx.Client(
            timeout=_TIMEOUT_SECONDS,
            trust_env=False,
            verify=outgoing.tls() or True,
            proxy=proxy_to(api, outgoing),
        )

    def send(self, text: str) -> None:
        """Returns once the message is accepted. Waits and logs while the service is unreachable or
        asks to wait. A crash in between may send it twice. Raises ChatRefused.
        """
        wait = _FIRST_WAIT
        while (retry_after := self._attempt(text)) is not None:
            pause = retry_after or wait
            log.warning("chat unavailable, message is retried", again_in_seconds=pause)
            self._sleep(pause)
            wait = min(wait * 2, _LONGEST_WAIT)
        self._sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def _attempt(self, text: str) -> float | None:
        """None when it was accepted, else the seconds that the service asks to wait, 0 without a
        value.
        """
        body = {"chat_id": self._chat, "text": text, "disable_notification": True}
        try:
            response = self._http.post(self._url, json=body)
        except httpx.TransportError:
            return 0.0
        if response.is_success:
            return None
        document = _parse_document(response)
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            return float(document.get("parameters", {}).get("retry_after", 0))
        if response.is_server_error:
            return 0.0
        # The URL contains the token, so the message has no URL.
        raise ChatRefused(
            "cannot write to the chat: the service returned "
            f"{response.status_code} {document.get('description', '')}".rstrip(),
            "Fix the secrets of sovereign_mesh.telegram_mirror, then `agentbox restart`.",
        )


def _parse_document(response: httpx.Response) -> dict[str, Any]:
    try:
        value = response.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
