"""The slots that a session provides: external ones without their own `endpoint`."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Protocol
from urllib.parse import urlsplit

from agentbox.adapters.runtime.adapter import SlotConfig, SlotName
from agentbox.adapters.runtime.http_connection import is_loopback
from agentbox.contracts.mesh import OFFERED_SLOTS, Endpoint
from agentbox.core.slot_errors import SlotUnavailable
from agentbox.manifest.declarations.options import Options
from agentbox.manifest.slot_options import EndpointOptions

NO_SESSION = "no mesh session"


class ReopenableSlots(Protocol):
    """The part of the slot container that is used here."""

    def reconfigure(self, slot: SlotName, cfg: SlotConfig[Options]) -> None: ...
    async def wait_applied(self, slot: SlotName) -> None: ...
    def is_down(self, slot: SlotName) -> bool: ...


class SessionSlots:
    """`configs` returns the slots of the manifest; `box_name` is this box's name at its host."""

    def __init__(
        self,
        configs: Callable[[], Mapping[SlotName, SlotConfig[Options]]],
        slots: ReopenableSlots,
        *,
        host_url: str,
        ca_file: str,
        box_name: str,
    ) -> None:
        self._configs, self._slots = configs, slots
        self._host, self._ca_file, self._box_name = (
            urlsplit(host_url).hostname or "",
            ca_file,
            box_name,
        )
        self._offers: Mapping[str, Endpoint] | None = None  # None: no session
        self._token = ""
        self._rejected: dict[str, str] = {}

    @property
    def needed(self) -> tuple[SlotName, ...]:
        """The slots that need a session."""
        return tuple(
            slot
            for slot, cfg in self._configs().items()
            if slot in OFFERED_SLOTS
            and isinstance(cfg.options, EndpointOptions)
            and not cfg.options.endpoint
        )

    def status(self) -> dict[str, str]:
        """Slot -> its address, or why it has none."""
        return {slot: self._missing_reason(slot) or self._url(slot) for slot in self.needed}

    async def before_open(self, slot: SlotName) -> None:
        """Raises SlotUnavailable for a slot without an address. Events are exempt, since the
        journal is local."""
        if slot in self.needed and slot != "events" and (reason := self._missing_reason(slot)):
            raise SlotUnavailable(reason, slot=slot, impl=self._configs()[slot].use, since=None)

    def overlay(self, cfg: SlotConfig[Options]) -> SlotConfig[Options]:
        """The configuration completed with the session's address and token."""
        if cfg.slot not in self.needed or self._missing_reason(cfg.slot):
            return cfg
        options = cfg.options.changed(endpoint=self._url(cfg.slot))
        if self._ca_file:
            options = options.changed(ca_file=self._ca_file)
        return replace(
            cfg,
            options=options,
            box_at_host=self._box_name,
            secrets={**cfg.secrets, "token": self._token},
        )

    def apply(self, offers: Mapping[str, Endpoint], token: str) -> dict[str, str]:
        """Applies the session's offers; slots are reconfigured in the background. Returns slot ->
        why its address is invalid."""
        previous = {slot: self.overlay(self._configs()[slot]) for slot in self.needed}
        self._offers, self._token = offers, token
        self._rejected = {
            slot: reason
            for slot, endpoint in offers.items()
            if (reason := self._invalid_reason(endpoint.url))
        }
        self._reconfigure(previous)
        return dict(self._rejected)

    def drop(self) -> None:
        """Ends the session: its slots go down."""
        previous = {slot: self.overlay(self._configs()[slot]) for slot in self.needed}
        self._offers, self._token, self._rejected = None, "", {}
        self._reconfigure(previous)

    def retry_down(self) -> None:
        """Retries slots that are down, since the host is back."""
        for slot in self.needed:
            if self._slots.is_down(slot) and not self._missing_reason(slot):
                self._slots.reconfigure(slot, self.overlay(self._configs()[slot]))

    async def wait_all_applied(self, seconds: float) -> None:
        """Returns once all session slots are open or failed, or after `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*map(self._slots.wait_applied, self.needed))

    def _reconfigure(self, previous: Mapping[SlotName, SlotConfig[Options]]) -> None:
        for slot, old in previous.items():
            new = self.overlay(self._configs()[slot])
            if new != old or self._slots.is_down(slot):
                self._slots.reconfigure(slot, new)

    def _missing_reason(self, slot: str) -> str:
        if self._offers is None:
            return NO_SESSION
        if slot not in self._offers:
            return f"the host does not offer {slot}"
        return self._rejected.get(slot, "")

    def _url(self, slot: str) -> str:
        return self._offers[slot].url if self._offers else ""

    def _invalid_reason(self, url: str) -> str:
        """Why an address from the host must not be used; "" if it is valid."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return "the host's address for it is not an http(s) URL"
        if parts.username is not None or parts.password is not None:
            return "the host's address for it contains a credential"
        if parts.hostname != self._host:
            return f"the host's address for it is on {parts.hostname}, not on the host itself"
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            return "the host's address for it uses plain http"
        return ""
