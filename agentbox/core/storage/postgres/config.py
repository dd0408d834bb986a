"""What a store in PostgreSQL needs to know."""

from collections.abc import Mapping
from typing import Protocol

from agentbox.core.paths import Paths


class DatabaseOptions(Protocol):
    """The options of a slot that stores in PostgreSQL."""

    @property
    def schema(self) -> str: ...

    @property
    def pool_size(self) -> int: ...

    @property
    def timeout_seconds(self) -> int: ...

    @property
    def ca_file(self) -> str: ...


class DatabaseConfig(Protocol):
    """The configuration of such a slot, with the connection string in `secrets["dsn"]`."""

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

    @property
    def options(self) -> DatabaseOptions: ...
