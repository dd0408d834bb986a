"""Whom a host admits: by secret, image and posture, so often, so many, and no instance that runs twice."""

import hashlib
import hmac
from collections import deque
from collections.abc import Callable
from uuid import UUID

from agentbox.contracts.mesh import PROTOCOL, SECRET_BYTES, Registration
from agentbox.contracts.mesh_errors import DuplicateInstance, NotAdmitted
from agentbox.core.records.wire import refuse
from agentbox.core.slot_errors import ContractMismatch, QuotaExceeded, RateLimited
from agentbox.plan.model import Plan

REGISTERS = 10  # of one instance in a minute
REGISTERS_SECONDS = 60.0
BOOTS = 3  # changes of boot in that time are two boxes with one identity
BOOTS_SECONDS = 600.0
LONGEST = 256  # characters of a name or digest
MOST = 16  # entries of a map


class Admission:
    """Times are of the boot clock, divided by `scale`. Everything here is forgotten with the process."""

    def __init__(self, plan: Callable[[], Plan], now: Callable[[], float], scale: float) -> None:
        self._plan, self._now, self._scale = plan, now, scale
        self._asked: dict[tuple[str, str], deque[float]] = {}
        self._boots: dict[str, tuple[str, deque[float]]] = {}  # instance -> its last boot, and when that changed

    def check(self, asked: Registration, secret: bytes | None, principal: str) -> None:
        """`secret` is the SHA-256 that the instance was first seen with. Raises RateLimited, ValidationError,
        ContractMismatch, NotAdmitted."""
        if asked.protocol != PROTOCOL:
            row = {"slot": "protocol", "ours": str(PROTOCOL), "theirs": str(asked.protocol)}
            raise ContractMismatch(f"cannot join: this host speaks protocol {PROTOCOL}", mismatches=[row])
        _check_form(asked)
        self._check_rate(principal, asked.instance_id)
        if secret is not None and not hmac.compare_digest(secret, hashlib.sha256(asked.instance_secret).digest()):
            raise NotAdmitted("cannot join: this instance id is known with another secret")
        mesh = self._plan().mesh
        for key, told in (("admit_images", asked.image_hash), ("admit_postures", asked.posture_digest)):
            if (admitted := mesh.get(key)) and told not in admitted:
                raise NotAdmitted(f"cannot join: {told or '(none)'} is not in mesh.{key} of the host")

    def check_room(self, others: int) -> None:
        """Raises QuotaExceeded when that many other boxes fill the host."""
        most = int(self._plan().mesh["max_clients"])
        if others >= most:
            raise QuotaExceeded(
                f"cannot join: {others} boxes are here", limit="mesh sessions", observed=others, cap=most,
                config_path="mesh.max_clients",
            )  # fmt: skip

    def check_boot(self, asked: Registration) -> None:
        """Raises DuplicateInstance once an instance changed its boot too often: each change would end the other's session."""
        boot, changes = self._boots.get(asked.instance_id, (asked.boot_id, deque[float](maxlen=2 * BOOTS)))
        now = self._now()
        while changes and changes[0] <= now - BOOTS_SECONDS / self._scale:
            changes.popleft()
        if boot != asked.boot_id:
            changes.append(now)
        self._boots[asked.instance_id] = (asked.boot_id, changes)
        if len(changes) >= BOOTS:
            raise DuplicateInstance(
                "cannot join: two boxes run with this instance id, so one has a copy of the other's state volume",
                hint="remove mesh/instance from the state volume of one of them, and start it again",
            )

    def _check_rate(self, principal: str, instance_id: str) -> None:
        """The enrolment token is shared, so an instance is counted by itself."""
        now, span = self._now(), REGISTERS_SECONDS / self._scale
        self._asked = {key: times for key, times in self._asked.items() if times[-1] > now - span}
        times = self._asked.setdefault((principal, instance_id), deque(maxlen=REGISTERS))
        if len(times) == REGISTERS and times[0] > now - span:
            raise RateLimited(
                f"cannot register more than {REGISTERS} times a minute", retry_after=times[0] + span - now,
                limit=f"{REGISTERS}/min",
            )  # fmt: skip
        times.append(now)


def _check_form(asked: Registration) -> None:
    try:
        canonical = str(UUID(asked.instance_id))
    except ValueError:
        canonical = ""
    if canonical != asked.instance_id:
        raise refuse("/instance_id", "must be a UUID in lower case with hyphens")
    if len(asked.instance_secret) != SECRET_BYTES:
        raise refuse("/instance_secret", f"must be {SECRET_BYTES} bytes in base64")
    words = ("boot_id", "image_hash", "plan_digest", "posture_digest", "did", "api_base")
    for name in words:
        if len(getattr(asked, name)) > LONGEST:
            raise refuse(f"/{name}", f"must be at most {LONGEST} characters")
    if not asked.boot_id:
        raise refuse("/boot_id", "must not be empty")
    for name in ("contracts", "impls"):
        told = getattr(asked, name)
        if len(told) > MOST or any(len(word) > LONGEST for pair in told.items() for word in pair):
            raise refuse(f"/{name}", f"must have at most {MOST} entries of {LONGEST} characters")
