"""The built-in profiles (`config/profiles/<name>.toml`), and the chain of bases from a policy to a
profile.
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal, Protocol

from agentbox.core.data_files import config_dir
from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.frozen import frozen
from agentbox.policy.patterns.scopes import SCOPES, Scope
from agentbox.policy.policy import Policy, PolicyRuleSpec, build_policy

UNRESTRICTED: Final = "unrestricted"
"""The profile allowed in development boxes only."""


class PolicyChainError(ValueError):
    """`name` is neither a profile nor a policy, or closes a cycle of bases."""

    def __init__(self, name: str, *, is_cycle: bool) -> None:
        super().__init__(
            f"{name} is its own base"
            if is_cycle
            else f"{name} is neither a built-in profile nor a policy"
        )
        self.name = name
        self.is_cycle = is_cycle


class UnresolvedPolicy(Protocol):
    """One `[policies.<name>]` table: a base, and an array of rules per scope."""

    @property
    def base(self) -> str:
        """The profile or policy that it extends."""
        ...


@frozen
class ProfileRule:
    """A rule of a profile file, with the keys of a policy rule in a manifest."""

    mode: Literal["allow", "deny"]
    operations: tuple[str, ...]
    patterns: tuple[str, ...]


@cache
def profiles() -> Mapping[str, Policy]:
    """All built-in profiles by name. Raises AgentboxError (exit 2) if a file is invalid."""
    files = {path.stem: path for path in sorted((config_dir() / "profiles").glob("*.toml"))}
    loaded: dict[str, Policy] = {}
    try:
        tables = {
            name: tomllib.loads(path.read_text(encoding="utf-8")) for name, path in files.items()
        }
        for name in tables:
            _load(name, tables, loaded)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AgentboxError(
            f"cannot use the profiles in {config_dir() / 'profiles'}: {error}",
            "Reinstall agentbox: its data files belong beside its Python package.",
            exit_code=ExitCode.USAGE,
        ) from error
    return loaded


def chain(name: str, policies: Mapping[str, UnresolvedPolicy]) -> tuple[str, ...]:
    """The names from a built-in profile to this one. A built-in profile overrides a policy of the
    same name. Raises ChainError.
    """
    names = [name]
    while names[-1] not in profiles():
        if names[-1] not in policies:
            raise PolicyChainError(names[-1], is_cycle=False)
        base = policies[names[-1]].base
        if base in names:
            raise PolicyChainError(base, is_cycle=True)
        names.append(base)
    return tuple(reversed(names))


def effective_policy(name: str, policies: Mapping[str, UnresolvedPolicy]) -> Policy:
    """The effective policy of a profile or policy name. Raises ChainError, and PatternError for an
    invalid pattern.
    """
    root, *derived = chain(name, policies)
    policy = profiles()[root]
    for derived_name in derived:
        policy = build_policy(derived_name, rule_specs(policies[derived_name]), policy)
    return policy


def rule_specs(policy: UnresolvedPolicy) -> Mapping[Scope, Iterable[PolicyRuleSpec]]:
    """The rules of one policy by scope, without its base."""
    return {scope: getattr(policy, scope) for scope in SCOPES}


def _load(name: str, tables: Mapping[str, Mapping[str, Any]], loaded: dict[str, Policy]) -> Policy:
    """Loads a profile with its bases, each once. Raises KeyError for an unknown base."""
    if name not in loaded:
        table = dict(tables[name])
        if not table.pop("description"):
            raise ValueError(f"{name} has no description")
        base = _load(table.pop("base"), tables, loaded) if "base" in table else None
        rules = {scope: tuple(_rule(rule) for rule in table.pop(scope, ())) for scope in SCOPES}
        if table:
            raise ValueError(f"unknown key {min(table)} in {name}")
        loaded[name] = build_policy(name, rules, base)
    return loaded[name]


def _rule(table: Mapping[str, Any]) -> ProfileRule:
    lists = {key: tuple(items) for key, items in table.items() if key != "mode"}
    return ProfileRule(mode=table["mode"], **lists)
