"""Checks of an AgentSpec that need no host: specs that can never be started."""

import re
from collections.abc import Container
from dataclasses import fields
from typing import Final

from agentbox.contracts.orchestrator import (
    MAX_RATE,
    MAX_RUN_SECONDS,
    MAX_USES,
    MIN_LIMITS,
    STATE_NAME,
    AgentSpec,
    Limits,
)
from agentbox.core.slot_errors import ValidationError

NO_PROGRAM: Final = "must name a program, unless `agent` names an agent of the manifest"
_STATE_NAME: Final = re.compile(STATE_NAME)


def check_form(spec: AgentSpec, base: str = "") -> None:
    """Raises ValidationError with a pointer below `base`."""
    if spec.argv and not spec.argv[0]:
        raise _invalid(f"{base}/argv", "must name a program")
    if not spec.name:
        raise _invalid(f"{base}/name", "must not be empty")
    if not _STATE_NAME.fullmatch(spec.state):
        raise _invalid(
            f"{base}/state", "must be at most 64 of a-z 0-9 _ - and start with a letter or digit"
        )
    texts = {f"/argv/{index}": item for index, item in enumerate(spec.argv)}
    texts |= {f"/env/{name}": name + value for name, value in spec.env.items()} | {
        "/cwd": spec.cwd,
        "/name": spec.name,
        "/agent": spec.agent,
    }
    texts |= {f"/labels/{name}": name + value for name, value in spec.labels.items()}
    for pointer, text in texts.items():
        _check_text(f"{base}{pointer}", text)
    bad_name = next((name for name in spec.env if not name or "=" in name), None)
    if bad_name is not None:
        raise _invalid(f"{base}/env/{bad_name}", "is not a variable name")
    check_minimums(spec.limits, base)
    _check_constraints(spec, base)


def check_minimums(limits: Limits, base: str = "") -> None:
    """Raises ValidationError for a limit too low to run. `wall_seconds` 0 means no limit."""
    for field in fields(Limits):
        value, minimum = (
            getattr(limits, field.name),
            MIN_LIMITS.get(field.name, 0 if field.name == "wall_seconds" else 1),
        )
        if value is not None and value < minimum:
            raise _invalid(f"{base}/limits/{field.name}", f"must be at least {minimum:g}")


def check_program(spec: AgentSpec, defined: Container[str], base: str = "") -> None:
    """Raises ValidationError for an agent that the manifest does not define, and for a spec with
    neither agent nor argv."""
    if spec.agent and spec.agent not in defined:
        raise _invalid(f"{base}/agent", "must be an agent of the manifest")
    if not spec.argv and not spec.agent:
        raise _invalid(f"{base}/argv", NO_PROGRAM)


def _check_constraints(spec: AgentSpec, base: str) -> None:
    bounds = {"expires_s": (0, MAX_RUN_SECONDS), "uses": (0, MAX_USES), "rate": (1, MAX_RATE)}
    for index, constraint in enumerate(spec.constraints):
        for name, (minimum, maximum) in bounds.items():
            value = getattr(constraint, name)
            if value is not None and not minimum <= value <= maximum:
                raise _invalid(
                    f"{base}/constraints/{index}/{name}", f"must be from {minimum:g} to {maximum:g}"
                )
        _check_text(f"{base}/constraints/{index}/pattern", constraint.pattern)


def _check_text(pointer: str, text: str) -> None:
    if "\0" in text:
        raise _invalid(pointer, "must not contain NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _invalid(pointer, "must be text without lone surrogates") from error


def _invalid(pointer: str, detail: str) -> ValidationError:
    return ValidationError(
        f"invalid spec: {pointer} {detail}", errors=[{"pointer": pointer, "detail": detail}]
    )
