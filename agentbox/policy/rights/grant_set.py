"""The grants of one agent over all generations, with usage and revocation. Stored in agents.db."""

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from typing import Any, Final, Self

from agentbox.core.frozen import frozen
from agentbox.core.records.plain import build, to_plain
from agentbox.policy.patterns.scopes import Scope
from agentbox.policy.rights.authorization import Budget, Right

ANY_NETWORK: Final = "*:*"
RATE_SECONDS: Final = 60.0
_GRANTS: Final = ("grants", "secrets")  # fields of a grant set
_KERNEL: Final[tuple[Scope, ...]] = ("fs", "exec", "env")


@frozen
class Grant:
    """A right of an agent and its state. `used` counts uses; `recent` has the times of uses in the
    last minute, if the right has a rate. All times in Unix seconds.
    """

    right: Right
    revoked: bool = False
    used: int = 0
    recent: tuple[float, ...] = ()

    @property
    def grant_id(self) -> str:
        return self.right.grant_id

    @property
    def is_kernel_enforced(self) -> bool:
        """Whether it is enforced by the kernel, set up at the start, and cannot be revoked from a
        running process.
        """
        right = self.right
        return right.scope in _KERNEL or (right.scope == "net" and "tcp" in right.operations)

    def to_row(self) -> dict[str, Any]:
        """Plain data, without `to_plain` for speed: an agent has dozens and is saved three times
        per generation.
        """
        return {**vars(self), "right": {**vars(self.right)}}

    def has_ended(self, now: float) -> bool:
        """Whether it is revoked or expired."""
        return self.revoked or (self.right.expires_at is not None and self.right.expires_at <= now)

    @property
    def is_metered(self) -> bool:
        """Whether each use is counted: it has a count or a rate."""
        return self.right.uses is not None or self.right.rate is not None

    def exhausted_reason(self, now: float) -> str:
        """Why another use is denied; "" if it is allowed."""
        right = self.right
        if right.uses is not None and self.used >= right.uses:
            return f"the limit of {right.uses} uses is reached"
        if right.rate is not None and len(self._recent_uses(now)) >= right.rate:
            return f"the limit of {right.rate} uses a minute is reached"
        return ""

    def with_use(self, now: float) -> "Grant":
        """A copy with one more use."""
        recent = (*self._recent_uses(now), now) if self.right.rate is not None else ()
        return replace(self, used=self.used + 1, recent=recent)

    def effective_right(self, now: float) -> Right:
        """The right for checkers: once ended, it denies what it allowed."""
        return replace(self.right, mode="deny") if self.has_ended(now) else self.right

    def _recent_uses(self, now: float) -> tuple[float, ...]:
        return tuple(moment for moment in self.recent if now - RATE_SECONDS < moment <= now)


@frozen
class GrantSet:
    """`agent` is the name in [agents], "" for an ad hoc program; `root` the built-in profile of its
    policy. Empty by default.
    """

    agent: str = ""
    root: str = ""
    grants: tuple[Grant, ...] = ()
    provider: str = ""
    preset: str = ""  # settings of an agent CLI
    budget: Budget | None = None
    approval_required: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    skills: tuple[str, ...] = ("*",)  # globs of the skills that it is told of
    mcp: tuple[str, ...] = ()  # MCP servers that it is offered
    env: tuple[str, ...] = ()  # variables of the box that are passed on
    secrets: tuple[Grant, ...] = ()
    workspace: str = "branch"
    workspace_dir: str = "/workspace"
    limits: Mapping[str, Any] = field(
        default_factory=dict
    )  # of its table, as in [limits], including those that a spec lacks
    restart: Mapping[str, Any] = field(
        default_factory=dict
    )  # `[agents.<name>.restart]`; empty = the defaults
    token_sha256: str = ""  # of the running generation; "" = not running

    def all_grants(self) -> Iterator[Grant]:
        """Rights and secrets."""
        yield from self.grants
        yield from self.secrets

    def find(self, grant_id: str) -> Grant | None:
        """None if this agent does not have that grant."""
        return next((grant for grant in self.all_grants() if grant.grant_id == grant_id), None)

    def with_grant(self, changed: Grant) -> Self:
        """A copy with one grant replaced."""

        def replaced(grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
            return tuple(
                changed if grant.grant_id == changed.grant_id else grant for grant in grants
            )

        return replace(self, grants=replaced(self.grants), secrets=replaced(self.secrets))

    def checked_rights(self, now: float) -> tuple[Right, ...]:
        """The rights that our programs check."""
        return tuple(
            grant.effective_right(now) for grant in self.grants if not grant.is_kernel_enforced
        )

    def rights_and_secrets(self, now: float) -> tuple[Right, ...]:
        """The same and the secrets, each as the right to read a variable: all that checkers
        receive.
        """
        return (
            *self.checked_rights(now),
            *(secret.effective_right(now) for secret in self.secrets),
        )

    def kernel_rights(self, now: float) -> tuple[Right, ...]:
        """The rights to enforce in the kernel at a start, without ended ones. Without a ceiling
        (`unrestricted`) they include the whole network.
        """
        candidates = (grant for grant in self.grants if self.requires_restart(grant))
        return tuple(grant.right for grant in candidates if not grant.has_ended(now))

    def requires_restart(self, grant: Grant) -> bool:
        """Whether a running process must end to lose this grant."""
        return grant.is_kernel_enforced or self._opens_network(grant)

    def next_expiry(self, now: float) -> float | None:
        """The next expiry of a grant."""
        expiries = [
            grant.right.expires_at
            for grant in self.all_grants()
            if grant.right.expires_at is not None and not grant.has_ended(now)
        ]
        return min(expiries, default=None)

    def describe(self, now: float) -> dict[str, Any]:
        """Ids and states for display, never a token."""
        return {
            "root": self.root,
            "agent": self.agent,
            "provider": self.provider,
            "budget": to_plain(self.budget),
            "children": list(self.children),
            "skills": list(self.skills),
            "mcp": list(self.mcp),
            "approval_required": list(self.approval_required),
            "workspace": self.workspace,
            "grants": [_describe_grant(grant, now) for grant in self.grants],
            "secrets": [_describe_grant(grant, now) for grant in self.secrets],
        }

    def _opens_network(self, grant: Grant) -> bool:
        return (
            self.root == "unrestricted"
            and grant.right.scope == "net"
            and ANY_NETWORK in grant.right.patterns
        )

    def to_row(self) -> dict[str, Any]:
        """Plain data."""
        row = {
            item.name: to_plain(getattr(self, item.name))
            for item in fields(self)
            if item.name not in _GRANTS
        }
        return {
            **row,
            **{name: [grant.to_row() for grant in getattr(self, name)] for name in _GRANTS},
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any] | None) -> Self:
        """The inverse of `to_row`; a row of an older version is an empty set."""
        if row is None:
            return cls()
        rows = dict(row)
        budget = rows.pop("budget", None)
        grant_set = build(cls, rows, "holding")
        assert isinstance(grant_set, cls)
        return replace(grant_set, budget=None if budget is None else Budget(**budget))


def _describe_grant(grant: Grant, now: float) -> dict[str, Any]:
    """A right with its state, without unset bounds."""
    right: dict[str, Any] = to_plain(grant.right)
    bounds = {name: right.pop(name) for name in ("expires_at", "uses", "rate", "methods", "paths")}
    state = "revoked" if grant.revoked else "expired" if grant.has_ended(now) else "held"
    used = {"used": grant.used} if grant.right.uses is not None else {}
    return {
        **right,
        **{name: value for name, value in bounds.items() if value not in (None, ())},
        "state": state,
        **used,
    }
