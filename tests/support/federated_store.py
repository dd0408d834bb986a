"""Fixtures of a contract suite for a slot of a mesh session: box A is a host behind a real
listener, the class under test is configured as box B has it from its session. Names, prefixes and
origins are B's own.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from agentbox_testkit.clock import ManualClock

from agentbox.adapters.runtime.adapter import SlotConfig, SlotName
from agentbox.adapters.runtime.registry import resolve
from agentbox.api.mesh.session_callers import box_principal
from agentbox.contracts.mesh import Registration
from agentbox.manifest.declarations.options import Options
from agentbox.mesh.client.host_connection import HostConnection
from agentbox.mesh.client.instance import InstanceIdentity
from agentbox.mesh.client.session_slots import SessionSlots
from support import tables
from support.delivery_store import DeliveryStore
from support.mesh import ENROLMENT, write_enrolment
from support.served_store import ServedStore


class FederatedStore(ServedStore):
    """As `ServedStore`, with a session: `served` is the local class of the host, `options` are its
    options; `class_options` are those of the class under test besides its address.
    """

    def __init__(
        self,
        slot: SlotName,
        impl: str,
        prefix: Path,
        *,
        served: str,
        clock: ManualClock,
        options: Mapping[str, Any] | None = None,
        class_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(slot, impl, prefix, served=served, clock=clock, options=options)
        self._plan = replace(self._plan, mesh=tables.mesh(mode="host"))
        self._registrant = _Registrant(
            replace(self.cfg, options=type(self.cfg.options)(**(class_options or {})), secrets={})
        )

    @property
    def name(self) -> str:
        """The name of the box at its host."""
        return box_principal(self._registrant.instance.id)

    async def serve(self) -> None:
        """Starts the host, and registers: after a restart of the host the session is the same."""
        write_enrolment(self._peer.prefix)
        await super().serve()
        self.cfg = await self._registrant.register(self.url)


class FederatedEvents(DeliveryStore):
    """As `DeliveryStore`, with the token of a session."""

    def __init__(self, prefix: Path, *, clock: ManualClock) -> None:
        super().__init__(prefix, clock=clock)
        self._plan = replace(self._plan, mesh=tables.mesh(mode="host"))
        self._registrant = _Registrant(
            replace(self.cfg, options=type(self.cfg.options)(), secrets={})
        )

    async def serve(self) -> None:
        """Starts the host, and registers."""
        write_enrolment(self._peer.prefix)
        await ServedStore.serve(self)
        self.cfg = await self._registrant.register(self.url)

    @property
    def box(self) -> str:
        """The name of this box in the host's journal."""
        return self._registrant.instance.id


class _Registrant:
    """Registers a box for one slot."""

    def __init__(self, base: SlotConfig[Options]) -> None:
        self._base = base
        self.instance, self._boot = InstanceIdentity(str(uuid4()), os.urandom(32)), str(uuid4())

    async def register(self, url: str) -> SlotConfig[Options]:
        """Return the slot's configuration with the values of the session."""
        slot, use = self._base.slot, self._base.use
        registration = Registration(
            protocol=1,
            instance_id=self.instance.id,
            instance_secret=self.instance.secret,
            boot_id=self._boot,
            contracts={slot: resolve(slot, use).contract_version},
            impls={slot: use},
        )
        link = HostConnection(url, ENROLMENT, timeout=10)
        session = await link.register(registration)
        await link.close()
        session_slots = SessionSlots(
            lambda: {slot: self._base},
            _NoContainer(),
            host_url=url,
            ca_file="",
            box_name=box_principal(self.instance.id),
        )
        assert session_slots.apply(session.endpoints, session.token) == {}, (
            "the host's addresses are its own"
        )
        return session_slots.overlay(self._base)


class _NoContainer:
    """Replaces the slots of a box: the suite opens the class itself."""

    def reconfigure(self, slot: SlotName, cfg: SlotConfig[Options]) -> None:
        """Nothing runs yet."""

    async def wait_applied(self, slot: SlotName) -> None:
        """Nothing is pending."""

    def is_down(self, slot: SlotName) -> bool:
        """Nothing is down."""
        return False
