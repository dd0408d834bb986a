"""Admission rules of a host: secret, image, posture, rate, capacity, duplicate instances."""

import hashlib
import hmac
from collections import deque
from collections.abc import Callable
from uuid import UUID

from agentbox.contracts.mesh import PROTOCOL, SECRET_BYTES, Registration
from agentbox.contracts.mesh_errors import DuplicateInstance, NotAdmitted
from agentbox.core.records.wire import invalid_value
from agentbox.core.slot_errors import ContractMismatch, QuotaExceeded, RateLimited
from agentbox.plan.model import Plan

MAX_REGISTRATIONS = 10  # per instance and minute
REGISTRATION_SECONDS = 60.0
MAX_BOOTS = 3  # boot changes in that time indicate two boxes with one identity
BOOT_SECONDS = 600.0
MAX_TEXT = 256  # characters of a name or digest
MAX_ENTRIES = 16  # entries of a map


class Admission:
    """Times are of the boot clock, divided by `scale`. The state is lost with the process."""

    def __init__(self, plan: Callable[[], Plan], now: Callable[[], float], scale: float) -> None:
        self._plan, self._now, self._scale = plan, now, scale
        self._registrations: dict[tuple[str, str], deque[float]] = {}
        self._boots: dict[
            str, tuple[str, deque[float]]
        ] = {}  # instance -> its last boot, times of changes

    def check(self, registration: Registration, secret: bytes | None, principal: str) -> None:
        """`secret`: SHA-256 of the instance's first secret. Raises RateLimited, ValidationError,
        ContractMismatch, NotAdmitted."""
        if registration.protocol != PROTOCOL:
            mismatch = {
                "slot": "protocol",
                "ours": str(PROTOCOL),
                "theirs": str(registration.protocol),
            }
            raise ContractMismatch(
                f"cannot join: this host requires protocol {PROTOCOL}", mismatches=[mismatch]
            )
        _check_fields(registration)
        self._check_rate(principal, registration.instance_id)
        if secret is not None and not hmac.compare_digest(
            secret, hashlib.sha256(registration.instance_secret).digest()
        ):
            raise NotAdmitted("cannot join: this instance id is registered with another secret")
        mesh = self._plan().mesh
        for key, value in (
            ("admit_images", registration.image_hash),
            ("admit_postures", registration.posture_digest),
        ):
            if (admitted := getattr(mesh, key)) and value not in admitted:
                raise NotAdmitted(
                    f"cannot join: {value or '(none)'} is not in mesh.{key} of the host"
                )

    def check_capacity(self, other_boxes: int) -> None:
        """Raises QuotaExceeded if the host is full."""
        max_clients = self._plan().mesh.max_clients
        if other_boxes >= max_clients:
            raise QuotaExceeded(
                f"cannot join: the host already has {other_boxes} boxes",
                limit="mesh sessions",
                observed=other_boxes,
                cap=max_clients,
                config_path="mesh.max_clients",
            )

    def check_boot(self, registration: Registration) -> None:
        """Raises DuplicateInstance after too many boot changes of an instance, each of which ends
        the other box's session."""
        boot, changes = self._boots.get(
            registration.instance_id, (registration.boot_id, deque[float](maxlen=2 * MAX_BOOTS))
        )
        now = self._now()
        while changes and changes[0] <= now - BOOT_SECONDS / self._scale:
            changes.popleft()
        if boot != registration.boot_id:
            changes.append(now)
        self._boots[registration.instance_id] = (registration.boot_id, changes)
        if len(changes) >= MAX_BOOTS:
            raise DuplicateInstance(
                "cannot join: two boxes run with this instance id, so one has a copy of the "
                "other's state volume",
                hint="remove mesh/instance from the state volume of one of them, and start it "
                "again",
            )

    def _check_rate(self, principal: str, instance_id: str) -> None:
        """Counts by instance, since the enrolment token is shared."""
        now, window = self._now(), REGISTRATION_SECONDS / self._scale
        self._registrations = {
            key: times for key, times in self._registrations.items() if times[-1] > now - window
        }
        times = self._registrations.setdefault(
            (principal, instance_id), deque(maxlen=MAX_REGISTRATIONS)
        )
        if len(times) == MAX_REGISTRATIONS and times[0] > now - window:
            raise RateLimited(
                f"cannot register more than {MAX_REGISTRATIONS} times a minute",
                retry_after=times[0] + window - now,
                limit=f"{MAX_REGISTRATIONS}/min",
            )
        times.append(now)


def _check_fields(registration: Registration) -> None:
    try:
        canonical = str(UUID(registration.instance_id))
    except ValueError:
        canonical = ""
    if canonical != registration.instance_id:
        raise invalid_value("/instance_id", "must be a UUID in lower case with hyphens")
    if len(registration.instance_secret) != SECRET_BYTES:
        raise invalid_value("/instance_secret", f"must be {SECRET_BYTES} bytes in base64")
    text_fields = ("boot_id", "image_hash", "plan_digest", "posture_digest", "did", "api_base")
    for name in text_fields:
        if len(getattr(registration, name)) > MAX_TEXT:
            raise invalid_value(f"/{name}", f"must be at most {MAX_TEXT} characters")
    if not registration.boot_id:
        raise invalid_value("/boot_id", "must not be empty")
    for name in ("contracts", "impls"):
        entries = getattr(registration, name)
        if len(entries) > MAX_ENTRIES or any(
            len(text) > MAX_TEXT for pair in entries.items() for text in pair
        ):
            raise invalid_value(
                f"/{name}", f"must have at most {MAX_ENTRIES} entries of {MAX_TEXT} characters"
            )
