"""Runs restic for one repository. No credential is in an argument: passwords are in its
environment, the key of ssh in a private file. What it says is kept in files, so that no pipe fills
up.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from agentbox.backup.errors import UNUSABLE, BackupError
from agentbox.backup.restic.failures import failure
from agentbox.backup.restic.settings import ResticSettings
from agentbox.core.paths import Paths, environment

FOLDER: Final = "restic"  # below the folder of the repository
CACHE: Final = "restic-cache"
_PROGRAM: Final = "restic"
_END_SECONDS: Final = 10.0
_SAID: Final = 1 << 16  # bytes of messages that are read
_PASSED: Final = ("PATH", "TMPDIR")
_NO_SESSION: Final = "unable to start the sftp session"
_SSH_OPTIONS: Final = (
    "BatchMode=yes",
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    "StrictHostKeyChecking=yes",
    "GlobalKnownHostsFile=none",
    "UpdateHostKeys=no",
    "HostKeyAlias=repository",
    "ConnectTimeout=20",
    "ServerAliveInterval=20",
)


class Restic:
    """`folder` has the repository, if its address is "". Without a program restic on this machine
    every method raises BackupError (exit 3).
    """

    def __init__(self, folder: Path, settings: ResticSettings) -> None:
        self._folder, self._settings = folder, settings
        self._private: tempfile.TemporaryDirectory[str] | None = None

    def run(self, action: str, *arguments: str) -> str:
        """What it prints. Raises BackupError `cannot <action>: <why>`."""
        code, printed, said = self.result(action, *arguments)
        if code:
            raise failure(action, said)
        return printed

    def result(self, action: str, *arguments: str) -> tuple[int, str, str]:
        """Exit code, what it printed, what it said on stderr. Raises BackupError without restic."""
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
            process = self._start(action, arguments, stdout=printed, stderr=said)
            code = process.wait()
            return code, _text(printed, -1), self._why(_text(said))

    def store(
        self,
        action: str,
        name: str,
        chunks: Iterable[bytes],
        *,
        host: str,
        tags: Sequence[str],
        rate: int = 0,
    ) -> str:
        """Makes a snapshot of one file of that name; returns its id. Nothing is made if `chunks`
        raises. Raises BackupError, and what `chunks` raises.
        """
        arguments = ["backup", "--json", "--stdin", "--stdin-filename", name, "--host", host]
        arguments += [word for tag in tags for word in ("--tag", tag)]
        if rate:
            arguments += ["--limit-upload", str(max(1, rate // 1024))]
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
            process = self._start(
                action, arguments, stdin=subprocess.PIPE, stdout=printed, stderr=said
            )
            assert process.stdin is not None
            try:
                with suppress(BrokenPipeError):  # it has failed, and says why
                    for chunk in chunks:
                        process.stdin.write(chunk)
                    process.stdin.flush()
            except BaseException:
                _end(process)  # before its input ends: what it has is not a whole file
                raise
            finally:
                with suppress(BrokenPipeError):
                    process.stdin.close()
            code = process.wait()
            if code:
                raise failure(action, self._why(_text(said)))
            return str(_summary(_text(printed, -1))["snapshot_id"])

    @contextmanager
    def dumped(self, action: str, snapshot: str, name: str) -> Iterator[IO[bytes]]:
        """The bytes of a file of a snapshot. Raises BackupError at the end of the block, in place
        of what the block raises, if restic failed.
        """
        with tempfile.TemporaryFile() as said:
            arguments = ("dump", "--no-lock", snapshot, f"/{name}")
            process = self._start(action, arguments, stdout=subprocess.PIPE, stderr=said)
            assert process.stdout is not None
            try:
                yield process.stdout
                if process.stdout.read(1):  # nobody wants the rest
                    return
            except BaseException as error:
                if not process.stdout.read(1) and process.wait():
                    raise failure(action, self._why(_text(said))) from error
                raise
            else:
                if process.wait():
                    raise failure(action, self._why(_text(said)))
            finally:
                process.stdout.close()
                _end(process)

    def _why(self, said: str) -> str:
        """With what ssh says: restic may end before it has read that."""
        if _NO_SESSION not in said or "subprocess ssh: " in said:
            return said
        argv, nothing = self._ssh(), subprocess.DEVNULL
        asked = subprocess.run(
            argv, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, check=False
        )
        return asked.stderr[:_SAID].decode("utf-8", "replace") + said

    def _start(
        self, action: str, arguments: Iterable[str], **streams: Any
    ) -> "subprocess.Popen[bytes]":
        variables = {name: value for name in _PASSED if (value := environment().get(name))}
        variables.setdefault("PATH", os.defpath)
        program = shutil.which(_PROGRAM, path=variables["PATH"])
        if program is None:
            raise BackupError(
                UNUSABLE,
                f"cannot {action}: there is no program restic on this machine",
                "Install it: apt install restic. In a container it is part of the image.",
            )
        settings = self._settings
        variables |= {
            "RESTIC_PASSWORD": settings.password,
            "RESTIC_PROGRESS_FPS": "0.01",
            **settings.credentials,
        }
        argv, options = [program], dict[str, Any](streams)
        if settings.address is None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            argv += ["--repo", FOLDER, "--no-cache"]
            options |= {"cwd": self._folder, **_owner(self._folder)}
        else:
            argv += ["--repo", settings.repository]
            is_own = self._folder.is_dir() and self._folder.stat().st_uid == os.geteuid()
            argv += ["--cache-dir", str(self._folder / CACHE)] if is_own else ["--no-cache"]
            authorities = Paths.for_this_process().all_authorities
            if authorities.is_file():
                variables["SSL_CERT_FILE"] = str(authorities)
            if settings.address.scheme == "sftp":
                argv += ["--option", f"sftp.command={shlex.join(self._ssh())}"]
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([*argv, *arguments], env=variables, **options)

    def _ssh(self) -> list[str]:
        """The command that connects, with files that only this process and its children read."""
        address = self._settings.address
        assert address is not None
        if self._private is None:
            self._private = tempfile.TemporaryDirectory(prefix="agentbox-restic-")
            _write(Path(self._private.name, "key"), f"{self._settings.ssh_key.strip()}\n")
            known = f"repository {self._settings.ssh_host_key}\n"
            _write(Path(self._private.name, "known_hosts"), known)
        folder = self._private.name
        options = (*_SSH_OPTIONS, f"UserKnownHostsFile={folder}/known_hosts")
        given = [word for option in options for word in ("-o", option)]
        return [
            *("ssh", "-F", "none", "-x", "-a", "-i", f"{folder}/key", *given),
            *("-p", str(address.port), "-l", address.user, address.host, "-s", "sftp"),
        ]


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _owner(folder: Path) -> Mapping[str, Any]:
    """As root, restic runs as the owner of a folder: a box can use later what it makes, and a link
    that the box made leads it nowhere else.
    """
    if os.geteuid() != 0:
        return {}
    status = folder.stat()
    return {"user": status.st_uid, "group": status.st_gid, "extra_groups": []}


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends it, with its lock removed where it can still do that."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _text(file: IO[bytes], most: int = _SAID) -> str:
    file.seek(0)
    return file.read(most).decode("utf-8", "replace")


def _summary(printed: str) -> Mapping[str, Any]:
    """The last line of `restic backup --json`."""
    last: Mapping[str, Any] = json.loads(printed.splitlines()[-1])
    return last
