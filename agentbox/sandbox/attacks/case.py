"""An attack case, and the information about its target. Imported on both sides of the wire."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final, Self

PASSED: Final = "passed"
"""The reply of an attack that nothing stopped."""
ABSENT: Final = "absent: "
"""Prefix of the reply of an attack whose target is missing."""
OFF: Final = "off: "
"""Prefix of the reason if the target is disabled in the manifest."""
DEFAULT_LIMITS: Final[Mapping[str, int]] = {
    "memory": 2 << 30,
    "pids": 128,
    "fds": 1024,
    "tmp": 64 << 20,
    "branch_disk": 1 << 30,
    "stdout": 1 << 20,
}
"""The limits of an agent if the manifest sets none."""
LAYERS: Final = (
    *(
        "landlock",
        "seccomp",
        "reaper",
        "gateway proxy",
        "model gateway",
        "agent-api",
        "watchdog",
        "container",
        "API",
    ),
    *("kernel", "branch", "agent host"),
)
"""The layers that stop attacks. `kernel`: ordinary rules and limits for unprivileged processes."""
EDITIONS: Final[Mapping[int, str]] = {
    1: "what the box was built against",
    2: "what an independent verification of the box got through, "
    "and what attacks on its repairs did",
    3: "what a second attack on the repaired box got through",
    4: "what came with sandboxes and skills",
}
"""Why cases were added, by `since`."""


class TargetMissing(Exception):
    """The target of the attack does not exist, so nothing was proved."""


@dataclass(frozen=True, kw_only=True)
class VictimAgent:
    """Another, idle run of the attacker's program in the same box. `address` is that of `length`
    secret bytes in its memory.
    """

    agent_id: str = ""
    pid: int = 0
    home: str = ""
    address: int = 0
    length: int = 0
    port: int = 0  # of its server on loopback; 0 = it could not open one
    state: str = ""  # id of the state with its note; "" = no agent API
    bead: str = ""  # that it created


@dataclass(frozen=True, kw_only=True)
class TargetInfo:
    """What an attacker could find out itself, provided so that each case has a real target.
    Contains no secrets.
    """

    neighbour: VictimAgent = VictimAgent()
    secrets: tuple[str, ...] = ()  # files with a secret
    folders: tuple[str, ...] = ()  # of the control plane
    sockets: tuple[str, ...] = ()  # paths of the control plane's sockets
    writable: str = ""  # a directory of the control plane that the box's user may write
    ports: tuple[int, ...] = ()  # of the control plane
    workspace: str = ""
    ended_token: str = ""  # of an agent that has ended
    lent_token: str = ""  # of an agent that ends during the case
    providers: tuple[str, ...] = ()  # names of enabled model providers
    secret_address: str = ""  # an address of this host that no policy grants
    limits: Mapping[str, int] = field(
        default_factory=dict
    )  # of an agent, by name in the registry; default: DEFAULT_LIMITS
    patience: float = 10.0  # seconds that a flood waits, above its limit, to be stopped

    @property
    def victim_pid(self) -> int:
        """The process of another agent. Raises TargetMissing."""
        if not self.neighbour.pid:
            raise TargetMissing("no victim agent")
        return self.neighbour.pid

    def lowered(self, lower: Mapping[str, int]) -> Self:
        """With the lower of the current and these limits."""
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
        """The size of a flood: a quarter above the limit, so that one that nothing stops does not
        break the host.
        """
        cap = self._cap(limit)
        return cap + cap // 4 + 1

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`. Ignores unknown members."""
        names = {item.name for item in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in data.items()
            if name in names
        }
        return cls(**{**values, "neighbour": VictimAgent(**data.get("neighbour", {}))})


ATTACKER_NAME: Final = "doctor-attacker"
"""The name of attacker and victim: two runs of one program are separate, whatever their name."""
VICTIM_NOTE: Final = "what the victim wrote down"

Attempt = Callable[[TargetInfo], str]


@dataclass(frozen=True, kw_only=True)
class AttackCase:
    """`blocked_by`: each reply that counts as stopped, with the layer that gives it. `isolated`:
    runs in an agent of its own, which may be ended. `tests`: other tests of the same rule, as
    `path::name`. `since`: the first edition of the suite with the case. `lower`: lower limits for
    its agent, so that a smaller flood suffices.
    """

    name: str
    title: str
    blocked_by: Mapping[str, str]
    attempt: Attempt
    isolated: bool = False
    tests: tuple[str, ...] = ()
    since: int = 1
    lower: Mapping[str, int] = field(default_factory=dict)


@dataclass
class AttackGroup:
    """The cases of one module, in order."""

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
        """Registers the decorated attempt. `title` continues `an agent …`."""

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
