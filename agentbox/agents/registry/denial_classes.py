"""Whether a refusal is benign, a matter of policy, or an attack: `config/denials.toml`, and bounds of what stays benign."""

import time
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, get_args

from agentbox.core.data_files import config_dir
from agentbox.core.errors import AgentboxError, ExitCode

DenialClass = Literal["benign", "policy", "attack"]
BENIGN_A_MINUTE: Final = 64  # of one agent; more are a matter of policy
_FILE: Final = "denials.toml"
Row = tuple[str, str, str]  # layer, rule, signature; "" = any signature


class Classes:
    """Used by one event loop."""

    def __init__(self) -> None:
        self._table = classes()  # before any agent: without it no agent is started
        self._minutes: dict[str, tuple[int, int]] = {}  # by agent: which minute, and how many were benign in it

    def split(self, agent_id: str, row: Row, count: int) -> Mapping[DenialClass, int]:
        """How many of `count` equal refusals are of which class."""
        layer, rule, _ = row
        found = self._table.get(row) or self._table.get((layer, rule, "")) or "policy"
        if found != "benign":
            return {found: count}
        few = self._taken(agent_id, count)
        split: dict[DenialClass, int] = {"benign": few, "policy": count - few}
        return {name: number for name, number in split.items() if number}

    def forget(self, agent_id: str) -> None:
        """The agent is over."""
        self._minutes.pop(agent_id, None)

    def _taken(self, agent_id: str, count: int) -> int:
        now = int(time.monotonic() // 60)
        minute, used = self._minutes.get(agent_id, (now, 0))
        used = used if minute == now else 0
        few = min(count, BENIGN_A_MINUTE - used)
        self._minutes[agent_id] = (now, used + few)
        return few


@cache
def classes() -> Mapping[Row, DenialClass]:
    """The table. Raises AgentboxError (exit 2) for a file that cannot be used."""
    path = config_dir() / _FILE
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))["denial"]
        return {(row["layer"], row["rule"], row["signature"]): _class(row) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AgentboxError(
            f"cannot use {path}: {error}", "Restore the file from the repository.", exit_code=ExitCode.USAGE
        ) from error


def _class(row: Mapping[str, Any]) -> DenialClass:
    if row["class"] not in get_args(DenialClass):
        raise ValueError(f"{row['class']} is no class of a refusal")
    found: DenialClass = row["class"]
    return found
