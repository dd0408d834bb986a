"""Classifies denials as benign, policy or attack: `config/denials.toml`, with a limit on benign
ones."""

import time
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, get_args

from agentbox.core.data_files import config_dir
from agentbox.core.errors import AgentboxError, ExitCode

DenialClass = Literal["benign", "policy", "attack"]
BENIGN_A_MINUTE: Final = 64  # per agent; further ones count as policy
_FILE: Final = "denials.toml"
ClassKey = tuple[str, str, str]  # layer, rule, signature; "" = any signature


class DenialClassifier:
    """Used by one event loop."""

    def __init__(self) -> None:
        self._table = (
            load_classes()
        )  # load before any agent starts; an unusable table prevents all starts
        self._minutes: dict[str, tuple[int, int]] = {}  # agent id -> (minute, benign denials in it)

    def split(self, agent_id: str, key: ClassKey, count: int) -> Mapping[DenialClass, int]:
        """Split `count` equal denials by class."""
        layer, rule, _ = key
        denial_class = self._table.get(key) or self._table.get((layer, rule, "")) or "policy"
        if denial_class != "benign":
            return {denial_class: count}
        benign = self._count_benign(agent_id, count)
        counts: dict[DenialClass, int] = {"benign": benign, "policy": count - benign}
        return {name: number for name, number in counts.items() if number}

    def discard(self, agent_id: str) -> None:
        """Drop the counters of an agent that has ended."""
        self._minutes.pop(agent_id, None)

    def _count_benign(self, agent_id: str, count: int) -> int:
        now = int(time.monotonic() // 60)
        minute, used = self._minutes.get(agent_id, (now, 0))
        used = used if minute == now else 0
        benign = min(count, BENIGN_A_MINUTE - used)
        self._minutes[agent_id] = (now, used + benign)
        return benign


@cache
def load_classes() -> Mapping[ClassKey, DenialClass]:
    """The table. Raises AgentboxError (exit 2) for an unusable file."""
    path = config_dir() / _FILE
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))["denial"]
        return {(row["layer"], row["rule"], row["signature"]): _parse_class(row) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AgentboxError(
            f"cannot use {path}: {error}",
            "Restore the file from the repository.",
            exit_code=ExitCode.USAGE,
        ) from error


def _parse_class(row: Mapping[str, Any]) -> DenialClass:
    if row["class"] not in get_args(DenialClass):
        raise ValueError(f"{row['class']} is not a denial class")
    denial_class: DenialClass = row["class"]
    return denial_class
