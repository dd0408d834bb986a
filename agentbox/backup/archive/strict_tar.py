"""A tar from elsewhere, read so that a damaged one does not look like a short one: it must have its
end, and its headers are bounded. Files with holes and other rare kinds are refused.
"""

import tarfile
from typing import IO, Any, Final, Self

MAX_HEADER: Final = 1 << 20  # bytes of an extended header; a path has 4096 at most
MAX_MEMBERS: Final = 2_000_000  # a head of 256 MiB names some 1 700 000 files
MAX_SECONDS: Final = 1 << 33  # of a time: nanoseconds stay below 2**63
_EXTENDED: Final = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
_REFUSED: Final = frozenset({tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE})


class TarDamaged(tarfile.TarError):
    """It is cut off, or has what no tar of agentbox has."""


class StrictTarInfo(tarfile.TarInfo):
    """A header. `tarfile` ends quietly at a header that is cut off or damaged; this raises
    TarDamaged.
    """

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            info = super().fromtarfile(tar)
        except _END:
            raise
        except _HEADER_ERROR as error:
            raise TarDamaged(f"it is cut off or damaged ({error or 'no end'})") from error
        except (ValueError, OverflowError) as error:
            raise TarDamaged(f"a header is damaged ({error})") from error
        if not -MAX_SECONDS < info.mtime < MAX_SECONDS:  # also what is not a number
            raise TarDamaged("a header has a time that is not one")
        return info

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        """Each header comes here before what it announces is read. `frombuf` is not called by
        every version of `tarfile`.
        """
        if self.type in _REFUSED:
            raise TarDamaged("it has a kind of file that no snapshot has")
        if self.size < 0 or (self.type in _EXTENDED and self.size > MAX_HEADER):
            raise TarDamaged(f"a header has {self.size} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]

    def _refuse(self, *_arguments: Any) -> None:
        raise TarDamaged("it has a file with holes, which no snapshot has")

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse


_END: Final[Any] = tarfile.EOFHeaderError  # type: ignore[attr-defined]
_HEADER_ERROR: Final[Any] = tarfile.HeaderError


def open_strict(stream: IO[bytes]) -> tarfile.TarFile:
    """For reading from the first entry to the last. Raises tarfile.TarError."""
    return tarfile.open(fileobj=stream, mode="r|", errors="surrogateescape", tarinfo=StrictTarInfo)
