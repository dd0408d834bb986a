"""What goes wrong while packages are resolved or fetched."""

from agentbox.core.errors import AgentboxError, ExitCode


class ResolveError(AgentboxError):
    """The packages that were asked for do not exist, or do not fit together. Exit 5."""

    exit_code = ExitCode.LOCK


class FetchError(AgentboxError):
    """A file could not be had: no network, a mirror that refuses, other bytes than were locked. Exit 4."""

    exit_code = ExitCode.FETCH


class NoNetworkError(FetchError):
    """A mirror could not be reached, or broke off."""


class FileGoneError(FetchError):
    """The mirror no longer has a file that its lists at hand name."""


class NotServedError(FetchError):
    """The mirror has another version than the lock. `names` are the packages to lock anew."""

    exit_code = ExitCode.LOCK

    def __init__(self, message: str, hint: str, names: tuple[str, ...]) -> None:
        super().__init__(message, hint)
        self.names = names


class PrerequisiteError(AgentboxError):
    """This host lacks what resolving needs. Exit 3."""

    exit_code = ExitCode.PREREQUISITE


class DiskFullError(PrerequisiteError):
    """The disk of the cache folder is full, or refuses. Exit 3; what came so far is kept."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message, "Free some space there, then run the command again: it goes on from there."
        )
