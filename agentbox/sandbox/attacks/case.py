"""A line of the battery, and the facts that it is given about the box. Both sides of the wire import this."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final, Self

PASSED: Final = "passed"
"""The reply of an attack that nothing stopped."""
ABSENT: Final = "absent: "
"""Begins the reply of an attack whose target is not there."""
OFF: Final = "off: "
"""Begins what follows, where the manifest has switched it off: there is nothing to attack."""
DEFAULT_LIMITS: Final[Mapping[str, int]] = {
    "memory": 2 << 30,
    "pids": 128,
    "fds": 1024,
    "tmp": 64 << 20,
    "branch_disk": 1 << 30,
    "stdout": 1 << 20,
}
"""The limits of an agent where the manifest sets none."""
LAYERS: Final = (
    *(
        "landlock",
        "seccomp",
        "reaper",
        "gateway proxy",
        "model gateway",
        "door",
        "watchdog",
        "container",
        "API",
    ),
    *("kernel", "branch", "agent host"),
)
"""Who stops. `kernel`: its ordinary rules and limits, for a process without rights."""
EDITIONS: Final[Mapping[int, str]] = {
    1: "what the box was built against",
    2: "what an independent verification of the box got through, and what attacks on its repairs did",
    3: "what a second attack on the repaired box got through",
}
"""Why lines came, by `since`."""


class TargetMissing(Exception):
    """What the attack is aimed at is not there, so nothing was shown."""


@dataclass(frozen=True, kw_only=True)
class VictimAgent:
    """Another run of the attacker's program in the same box, which holds still. `address` is that of `length` secret bytes in its memory."""

    agent_id: str = ""
    pid: int = 0
    home: str = ""
    address: int = 0
    length: int = 0
    port: int = 0  # of its own server on loopback; 0 = it could open none
    state: str = ""  # id of the state in which it left a note; "" = there was no door
    bead: str = ""  # that it made


@dataclass(frozen=True, kw_only=True)
class TargetInfo:
    """What an attacker could find out by itself, told to it so that each line aims at something real. No secret."""

    neighbour: VictimAgent = VictimAgent()
    secrets: tuple[str, ...] = ()  # files that hold one
    folders: tuple[str, ...] = ()  # the control plane's
    sockets: tuple[str, ...] = ()  # paths of its sockets
    writable: str = ""  # a folder of the control plane that the box's user may write
    ports: tuple[int, ...] = ()  # on which the control plane listens
    workspace: str = ""
    ended_token: str = ""  # that an agent held which has ended since
    lent_token: str = ""  # that an agent holds which ends while the line is tried
    providers: tuple[str, ...] = ()  # names of model providers that are enabled
    secret_address: str = ""  # an address of this host that no policy grants
    limits: Mapping[str, int] = field(
        default_factory=dict
    )  # of an agent, by their names in the registry; the rest: MOST
    patience: float = (
        10.0  # seconds that a flood which went past its limit waits for somebody to notice
    )

    def lowered(self, lower: Mapping[str, int]) -> Self:
        """With what of these limits is lower."""
        return replace(
            self,
            limits={
                **self.limits,
                **{name: min(self._cap(name), cap) for name, cap in lower.items()},
            },
        )

    def _cap(self, limit: str) -> int:
        return self.limits.get(limit, 0) or DEFAULT_LIMITS[limit]

    def above_limit(self, limit: str) -> int:
        """How far a flood goes: a quarter past the limit, so that one which nothing stops takes no host along."""
        cap = self._cap(limit)
        return cap + cap // 4 + 1

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`. A fact that it does not know is left out."""
        names = {item.name for item in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in data.items()
            if name in names
        }
        return cls(**{**values, "neighbour": VictimAgent(**data.get("neighbour", {}))})


ATTACKER_NAME: Final = "doctor-attacker"
"""Of the attacker and of the neighbour: two runs of one program are two, whatever they are called."""
VICTIM_NOTE: Final = "what the neighbour wrote down"

Attempt = Callable[[TargetInfo], str]


@dataclass(frozen=True, kw_only=True)
class AttackCase:
    """`answers`: each reply that counts as stopped, and the layer that gives it. `alone`: an agent of its own, since it
    may be ended. `tests`: what holds the line besides the battery itself, as `path::name`. `since`: the edition of the
    battery that has it first. `lower`: limits of its agent where the box's are higher, so that less is a flood."""

    name: str
    title: str
    blocked_by: Mapping[str, str]
    attempt: Attempt
    isolated: bool = False
    tests: tuple[str, ...] = ()
    since: int = 1
    lower: Mapping[str, int] = field(default_factory=dict)


@dataclass
class AttackSuite:
    """The lines of one file, in order."""

    prefix: str
    cases: list[AttackCase] = field(default_factory=list)

    def case(
        self,
        name: str,
        title: str,
        blocked_by: Mapping[str, str],
        *,
        tests: tuple[str, ...] = (),
        isolated: bool = False,
        since: int = 1,
        lower: Mapping[str, int] = MappingProxyType({}),
    ) -> Callable[[Attempt], Attempt]:
        """Enters the decorated attempt. `title` goes on `an agent …`."""

        def register(attempt: Attempt) -> Attempt:
            self.cases.append(
                AttackCase(
                    name=f"{self.prefix}.{name}",
                    title=title,
                    blocked_by=blocked_by,
                    attempt=attempt,
                    isolated=isolated,
                    tests=tests,
                    since=since,
                    lower=lower,
                )
            )
            return attempt

        return register
