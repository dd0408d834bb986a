"""What a store in PostgreSQL needs to know."""

from collections.abc import Mapping
from typing import Any, Protocol

from agentbox.core.paths import Paths


class DatabaseConfig(Protocol):
    """The configuration of a slot that stores in PostgreSQL: `secrets["dsn"]`, and the options
    `schema`, `pool_size`, `timeout_seconds` and `ca_file`."""

    @property
    def slot(self) -> str: ...

    @property
    def use(self) -> str: ...

    @property
    def box(self) -> str: ...

    @property
    def paths(self) -> Paths: ...

    @property
    def secrets(self) -> Mapping[str, str]: ...

    def option(self, name: str, default: Any = None) -> Any:
        """An option; if the plan lacks it, `default`, else the manifest's default."""
        ...
