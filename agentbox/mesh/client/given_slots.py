"""The slots that a client has from its session: external ones without an `endpoint` of their own."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import urlsplit

from agentbox.adapters.runtime.adapter import SlotConfig, SlotName
from agentbox.adapters.runtime.http_connection import is_loopback
from agentbox.contracts.mesh import OFFERED, Endpoint
from agentbox.core.slot_errors import SlotUnavailable

NO_SESSION = "no mesh session"


class Container(Protocol):
    """What of the container of slots is used here."""

    def reconfigure(self, slot: SlotName, cfg: SlotConfig) -> None: ...
    async def settled(self, slot: SlotName) -> None: ...
    def down(self, slot: SlotName) -> bool: ...


class GivenSlots:
    """`configs` are those of the manifest, asked for each time; `names` is the name of this box at its host."""

    def __init__(
        self, configs: Callable[[], Mapping[SlotName, SlotConfig]], container: Container, *, host_url: str, ca_file: str, names: str
    ) -> None:  # fmt: skip
        self._configs, self._container = configs, container
        self._host, self._ca_file, self._names = urlsplit(host_url).hostname or "", ca_file, names
        self._offers: Mapping[str, Endpoint] | None = None  # None = no session
        self._token = ""
        self._refused: dict[str, str] = {}

    @property
    def wanting(self) -> tuple[SlotName, ...]:
        """Those that only a session can serve."""
        return tuple(
            slot for slot, cfg in self._configs().items()
            if slot in OFFERED and cfg.use.startswith("external-") and not cfg.option("endpoint", "")
        )  # fmt: skip

    def shown(self) -> dict[str, str]:
        """Slot -> the address it was given, or why it has none."""
        return {slot: self._lack(slot) or self._url(slot) for slot in self.wanting}

    async def before_open(self, slot: SlotName) -> None:
        """Raises SlotUnavailable for a slot that has no address now. Events do without: the journal is this box's own."""
        if slot in self.wanting and slot != "events" and (why := self._lack(slot)):
            raise SlotUnavailable(why, slot=slot, impl=self._configs()[slot].use, since=None)

    def overlay(self, cfg: SlotConfig) -> SlotConfig:
        """The configuration with what the session gives."""
        if cfg.slot not in self.wanting or self._lack(cfg.slot):
            return cfg
        given: dict[str, Any] = {"endpoint": self._url(cfg.slot)}
        if self._ca_file:
            given["ca_file"] = self._ca_file
        if cfg.slot == "beads":
            given["names"] = self._names
        return replace(cfg, options={**cfg.options, **given}, secrets={**cfg.secrets, "token": self._token})

    def take(self, offers: Mapping[str, Endpoint], token: str) -> dict[str, str]:
        """What the session offers from now on; slots change over in the background. Slot -> why its address may not be used."""
        before = {slot: self.overlay(self._configs()[slot]) for slot in self.wanting}
        self._offers, self._token = offers, token
        self._refused = {slot: why for slot, one in offers.items() if (why := self._wrong(one.url))}
        self._reconfigure(before)
        return dict(self._refused)

    def drop(self) -> None:
        """The session is over: its slots go down."""
        before = {slot: self.overlay(self._configs()[slot]) for slot in self.wanting}
        self._offers, self._token, self._refused = None, "", {}
        self._reconfigure(before)

    def poke(self) -> None:
        """The host is back: what is down is tried at once."""
        for slot in self.wanting:
            if self._container.down(slot) and not self._lack(slot):
                self._container.reconfigure(slot, self.overlay(self._configs()[slot]))

    async def settled(self, seconds: float) -> None:
        """Returns once every slot of the session is open, or failed; after `seconds` at the latest."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*map(self._container.settled, self.wanting))

    def _reconfigure(self, before: Mapping[SlotName, SlotConfig]) -> None:
        for slot, old in before.items():
            new = self.overlay(self._configs()[slot])
            if new != old or self._container.down(slot):
                self._container.reconfigure(slot, new)

    def _lack(self, slot: str) -> str:
        if self._offers is None:
            return NO_SESSION
        if slot not in self._offers:
            return f"host offers no {slot}"
        return self._refused.get(slot, "")

    def _url(self, slot: str) -> str:
        return self._offers[slot].url if self._offers else ""

    def _wrong(self, url: str) -> str:
        """Why an address that the host gave may not be used; "" when it may."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return "the host's address for it is no http(s) address"
        if parts.username is not None or parts.password is not None:
            return "the host's address for it carries a credential"
        if parts.hostname != self._host:
            return f"the host's address for it is on {parts.hostname}, not on the host itself"
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            return "the host's address for it is plain http"
        return ""
