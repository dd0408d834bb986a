"""A real SFTP server on loopback: OpenSSH's sshd with a configuration, keys and a folder of its
own.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tools.skipping import machine_lacks

from support.ports import free_port

SSHD = "/usr/sbin/sshd"
_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/client.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
ForceCommand internal-sftp
Subsystem sftp internal-sftp
"""


@dataclass
class SftpServer:
    """It lets `key` in, as the user of this process. `store` has what is stored, below /."""

    folder: Path
    port: int

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def address(self) -> str:
        """As restic writes it."""
        return f"sftp://{getpass.getuser()}@127.0.0.1:{self.port}/{self.store}"

    @property
    def key(self) -> str:
        return (self.folder / "client").read_text()

    @property
    def host_key(self) -> str:
        return " ".join((self.folder / "host.pub").read_text().split()[:2])

    @contextmanager
    def running(self) -> Iterator[None]:
        """Until the block ends; connections end with it."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        log = self.folder / "log"
        with log.open("ab") as said:
            server = subprocess.Popen([SSHD, "-D", "-e", "-f", self.folder / "config"], stderr=said)
        try:
            while not _answers(self.port):
                assert server.poll() is None, log.read_text()
            yield
        finally:
            server.terminate()
            server.wait()


def sftp_server(folder: Path) -> SftpServer:
    """Not yet running."""
    if not Path(SSHD).is_file() or shutil.which("ssh") is None:
        machine_lacks("openssh-server, to which a backup is sent")
    for name in ("host", "client"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)]
        subprocess.run(argv, check=True)
    made = SftpServer(folder, free_port())
    made.store.mkdir()
    (folder / "config").write_text(_CONFIG.format(port=made.port, folder=folder))
    return made


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        return connection.recv(4) == b"SSH-"
    return False
