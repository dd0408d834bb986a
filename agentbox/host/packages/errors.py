"""Errors of resolving and fetching packages."""

from agentbox.core.errors import AgentboxError, ExitCode


class ResolveError(AgentboxError):
    """The requested packages do not exist or conflict. Exit 5."""

    exit_code = ExitCode.LOCK


class FetchError(AgentboxError):
    """A file could not be fetched: no network, an error of the mirror, unexpected bytes. Exit 4."""

    exit_code = ExitCode.FETCH


class NoNetworkError(FetchError):
    """A mirror could not be reached, or the connection broke."""


class NotTrustedError(FetchError):
    """A certificate or a proxy is in the way: another try does not help."""


class FileMissingError(FetchError):
    """The mirror no longer has a file of the cached package lists."""


class NotServedError(FetchError):
    """The mirror has another version than the lock. `names` are the packages to lock again."""

    exit_code = ExitCode.LOCK

    def __init__(self, message: str, hint: str, names: tuple[str, ...]) -> None:
        super().__init__(message, hint)
        self.names = names


class PrerequisiteError(AgentboxError):
    """This host lacks a requirement for resolving. Exit 3."""

    exit_code = ExitCode.PREREQUISITE


class DiskFullError(PrerequisiteError):
    """The disk of the cache directory is full or failed. Exit 3; complete files are kept."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message, "Free some space there, then run the command again: it resumes from there."
        )
