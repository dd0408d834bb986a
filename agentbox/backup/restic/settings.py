"""What restic is told: where the repository is, and its credentials."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentbox.backup.errors import PASSWORD, BackupError
from agentbox.core.errors import ExitCode
from agentbox.core.paths import Paths
from agentbox.manifest.named_types import RepositoryAddress, parse_address


@dataclass(frozen=True)
class ResticSettings:
    """`repository` is an address, "" for a folder. No credential is in the representation."""

    password: str = field(repr=False)
    verify_percent: int
    repository: str = ""
    ssh_host_key: str = ""
    ssh_key: str = field(default="", repr=False)
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> RepositoryAddress | None:
        """None for a folder."""
        return parse_address(self.repository) if self.repository else None


def read_settings(table: Mapping[str, Any], secret: Callable[[str], str | None]) -> ResticSettings:
    """`table` has the keys of [backup]; `secret` returns the value of a secret of that name. Raises
    BackupError (exit 2) for one that is not set.
    """

    def value(name: str) -> str:
        found = secret(name)
        if not found:
            raise BackupError(
                PASSWORD,
                f"cannot open the repository: the secret {name} is not set",
                f"Run `agentbox secrets set {name}`, then ./agentbox.sh up.",
                exit_code=ExitCode.USAGE,
            )
        return found

    key = table["ssh_key_env"]
    return ResticSettings(
        password=value(table["password_env"]),
        repository=table["repository"],
        ssh_host_key=table["ssh_host_key"],
        ssh_key=value(key) if key else "",
        credentials={name: value(name) for name in table["credentials"]},
        verify_percent=table["verify_percent"],
    )


def secret_of_box(paths: Paths, name: str) -> str | None:
    """The value of a secret in the box; None if it is not set. Raises BackupError (exit 3) for one
    that is not text.
    """
    for directory in (paths.mounted_secrets, paths.moved_secrets):
        try:
            value = (directory / name).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            continue
        except UnicodeDecodeError:
            raise BackupError(
                PASSWORD,
                f"cannot read secret {name}: it is not text",
                f"agentbox secrets set {name}",
            ) from None
        if value:
            return value
    return None
