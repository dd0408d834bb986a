"""What one agent holds over all of its lives, with what was used of it and what was taken back. Kept in agents.db."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Self

from agentbox.core.records.plain import build, plain
from agentbox.policy.patterns.scopes import Scope
from agentbox.policy.rights.standing import Budget, Right

ANY_NETWORK: Final = "*:*"
RATE_SECONDS: Final = 60.0
_GRANTS: Final = ("grants", "secrets")  # fields of a holding
_KERNEL: Final[tuple[Scope, ...]] = ("fs", "exec", "env")


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A right of an agent and its state. `uses` are those taken so far; `recent` the moments of those of the last minute,
    kept where the right has a rate. All times in Unix seconds."""

    right: Right
    revoked: bool = False
    used: int = 0
    recent: tuple[float, ...] = ()

    @property
    def grant_id(self) -> str:
        return self.right.grant_id

    @property
    def by_kernel(self) -> bool:
        """Whether a running process cannot be parted from it: the kernel was told once, at its start."""
        right = self.right
        return right.scope in _KERNEL or (right.scope == "net" and "tcp" in right.operations)

    def to_row(self) -> dict[str, Any]:
        """Plain data, without `plain`: an agent has dozens and is saved three times in a life."""
        return {**vars(self), "right": {**vars(self.right)}}

    def over(self, now: float) -> bool:
        """Taken back, or past its time."""
        return self.revoked or (self.right.expires_at is not None and self.right.expires_at <= now)

    @property
    def counted(self) -> bool:
        """Whether each use is taken: of what has a count or a rate."""
        return self.right.uses is not None or self.right.rate is not None

    def spent(self, now: float) -> str:
        """Why one more use is refused; "" when it is not."""
        right = self.right
        if right.uses is not None and self.used >= right.uses:
            return f"all {right.uses} uses are taken"
        if right.rate is not None and len(self._recent(now)) >= right.rate:
            return f"{right.rate} uses a minute are taken"
        return ""

    def taken(self, now: float) -> "Grant":
        """The same after one more use."""
        recent = (*self._recent(now), now) if self.right.rate is not None else ()
        return replace(self, used=self.used + 1, recent=recent)

    def standing(self, now: float) -> Right:
        """As a checker sees it: what is over denies what it allowed."""
        return replace(self.right, mode="deny") if self.over(now) else self.right

    def _recent(self, now: float) -> tuple[float, ...]:
        return tuple(moment for moment in self.recent if now - RATE_SECONDS < moment <= now)


@dataclass(frozen=True, kw_only=True)
class Holding:
    """`agent` is the name in [agents] that it was started as, "" for a program given ad hoc; `root` the built-in profile
    below its policy. The default holds nothing."""

    agent: str = ""
    root: str = ""
    grants: tuple[Grant, ...] = ()
    provider: str = ""
    budget: Budget | None = None
    approval_required: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # variables of the box that are passed through
    secrets: tuple[Grant, ...] = ()
    workspace: str = "branch"
    workspace_dir: str = "/workspace"
    limits: Mapping[str, Any] = field(default_factory=dict)  # of its table, as in [limits]: what a spec cannot say, too
    restart: Mapping[str, Any] = field(default_factory=dict)  # `[agents.<name>.restart]`; empty = the defaults
    token_sha256: str = ""  # of the life that runs; "" = none runs

    def all_grants(self) -> Iterator[Grant]:
        """Rights and secrets."""
        yield from self.grants
        yield from self.secrets

    def find(self, grant_id: str) -> Grant | None:
        """None for an id that is not of this agent."""
        return next((grant for grant in self.all_grants() if grant.grant_id == grant_id), None)

    def with_grant(self, changed: Grant) -> Self:
        """The same with one grant in another state."""

        def put(grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
            return tuple(changed if one.grant_id == changed.grant_id else one for one in grants)

        return replace(self, grants=put(self.grants), secrets=put(self.secrets))

    def checked(self, now: float) -> tuple[Right, ...]:
        """The rights that a program of ours checks."""
        return tuple(grant.standing(now) for grant in self.grants if not grant.by_kernel)

    def asked_for(self, now: float) -> tuple[Right, ...]:
        """The same and the secrets, each the reading of a variable: all that a checker is told."""
        return (*self.checked(now), *(one.standing(now) for one in self.secrets))

    def for_kernel(self, now: float) -> tuple[Right, ...]:
        """The rights that the kernel is told at a start: without those that are over. Without a ceiling (`unrestricted`)
        the whole network is among them."""
        own = (grant for grant in self.grants if self.ends_with(grant))
        return tuple(grant.right for grant in own if not grant.over(now))

    def ends_with(self, grant: Grant) -> bool:
        """Whether a process that runs must end for this grant to be gone."""
        return grant.by_kernel or self._opens_network(grant)

    def next_end(self, now: float) -> float | None:
        """When the next grant ends by itself."""
        ends = [
            one.right.expires_at for one in self.all_grants() if one.right.expires_at is not None and not one.over(now)
        ]
        return min(ends, default=None)

    def shown(self, now: float) -> dict[str, Any]:
        """For people: ids and states, never a token."""
        return {
            "root": self.root, "agent": self.agent, "provider": self.provider, "budget": plain(self.budget),
            "children": list(self.children), "approval_required": list(self.approval_required), "workspace": self.workspace,
            "grants": [_row(grant, now) for grant in self.grants],
            "secrets": [_row(grant, now) for grant in self.secrets],
        }  # fmt: skip

    def _opens_network(self, grant: Grant) -> bool:
        return self.root == "unrestricted" and grant.right.scope == "net" and ANY_NETWORK in grant.right.patterns

    def to_row(self) -> dict[str, Any]:
        """Plain data."""
        rest = {each.name: plain(getattr(self, each.name)) for each in fields(self) if each.name not in _GRANTS}
        return {**rest, **{name: [one.to_row() for one in getattr(self, name)] for name in _GRANTS}}

    @classmethod
    def from_row(cls, row: Mapping[str, Any] | None) -> Self:
        """The inverse of `to_row`; a row of a version that kept none holds nothing."""
        if row is None:
            return cls()
        rows = dict(row)
        budget = rows.pop("budget", None)
        made = build(cls, rows, "holding")
        assert isinstance(made, cls)
        return replace(made, budget=None if budget is None else Budget(**budget))


def _row(grant: Grant, now: float) -> dict[str, Any]:
    """A right with its state; what has no bound leaves it out."""
    right: dict[str, Any] = plain(grant.right)
    bounds = {name: right.pop(name) for name in ("expires_at", "uses", "rate", "methods", "paths")}
    state = "revoked" if grant.revoked else "expired" if grant.over(now) else "held"
    used = {"used": grant.used} if grant.right.uses is not None else {}
    return {
        **right,
        **{name: value for name, value in bounds.items() if value not in (None, ())},
        "state": state,
        **used,
    }
