"""Test hooks: faults that the environment can request from a test image. Standard library only.

They work only where the plan has `test_hooks`; otherwise phase 0 emits `TestHookIgnored` for each.
Phase 0 writes them into `boot.json`, from which the seal, the API and every program read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VARIABLES = (
    "AGENTBOX_TEST_FORCE_MISSING",
    "AGENTBOX_TEST_DELAY_PROGRAM",
    "AGENTBOX_TEST_DELAY_SLOT",
    "AGENTBOX_TEST_FAIL_SLOT",
    "AGENTBOX_TEST_SEAL_TIMEOUT",
    "AGENTBOX_TEST_CLOCK_SCALE",
)


@dataclass(frozen=True)
class FaultHooks:
    """The requested faults; none by default."""

    force_missing: str = ""  # probe id
    delay_program: Mapping[str, float] = field(
        default_factory=dict
    )  # program -> seconds before it starts to work
    delay_slot: Mapping[str, float] = field(default_factory=dict)  # slot -> seconds before it opens
    fail_slot: str = ""
    seal_timeout: float | None = None  # seconds
    clock_scale: float = 1.0  # periods are divided by this

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "FaultHooks":
        """Raises ValueError naming the variable that is invalid."""
        prefix = "AGENTBOX_TEST_"
        return cls(
            force_missing=env.get(f"{prefix}FORCE_MISSING", ""),
            delay_program=_delays(env, f"{prefix}DELAY_PROGRAM"),
            delay_slot=_delays(env, f"{prefix}DELAY_SLOT"),
            fail_slot=env.get(f"{prefix}FAIL_SLOT", ""),
            seal_timeout=_number(env, f"{prefix}SEAL_TIMEOUT"),
            clock_scale=_number(env, f"{prefix}CLOCK_SCALE") or 1.0,
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "FaultHooks":
        return cls(**document)


def requested_hooks(env: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the hook variables that are set and not empty."""
    return tuple(name for name in VARIABLES if env.get(name))


def _delays(env: Mapping[str, str], name: str) -> dict[str, float]:
    if not env.get(name):
        return {}
    target, colon, seconds = env[name].rpartition(":")
    if not (target and colon):
        raise ValueError(f"{name} must be <name>:<seconds>")
    return {target: _float(name, seconds)}


def _number(env: Mapping[str, str], name: str) -> float | None:
    return _float(name, env[name]) if env.get(name) else None


def _float(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{name} must end in a number, not {text!r}") from error
