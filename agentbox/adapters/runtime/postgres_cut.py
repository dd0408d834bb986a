"""A slot whose store is a schema of PostgreSQL: its tables as text, if its dump is asked for."""

from pathlib import Path

from agentbox.adapters.runtime.cut import StagedPart, Stop
from agentbox.core.storage.postgres.config import DatabaseConfig
from agentbox.core.storage.postgres.dump import BEGIN_SECONDS, SchemaDump


class PostgresCut:
    """`table` is the one whose rows are counted."""

    def __init__(self, cfg: DatabaseConfig, table: str) -> None:
        self._dump, self._slot, self._table = SchemaDump(cfg), cfg.slot, table

    def prepare(self) -> None:
        self._dump.connect()

    def begin(self, seconds: float = BEGIN_SECONDS) -> None:
        self._dump.begin(seconds)

    def size(self) -> int:
        return self._dump.size

    def stage(self, target: Path, stop: Stop) -> StagedPart:
        folder = f"external/{self._slot}"
        written = self._dump.write(target / folder, stop)
        return StagedPart(
            stores={folder: written["migration"]}, count=self._dump.count(self._table)
        )

    def close(self) -> None:
        self._dump.close()
