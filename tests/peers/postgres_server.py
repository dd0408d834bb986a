"""A real PostgreSQL 17 with pgvector on a loopback port, as an unprivileged user, with a data folder that goes with it."""

import contextlib
import os
import platform
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from debian_root import unpacked
from support.ports import free_port

from agentbox.plan.lockfile.model import ARCH_OF_SYSTEM

LOCK = Path(__file__).parent / "postgres/packages.lock"
BIN = "/usr/lib/postgresql/17/bin"
USER, NOBODY = "agentbox", 65534
DATABASE = "test"
_START_SECONDS = 30


class PostgresServer:
    """One server. `start` and `stop` as often as wanted; `remove` at the end. One that its maker left behind is removed by
    the next that is made."""

    def __init__(self, **settings: str) -> None:
        """`settings` go to postgresql.conf. Without fsync, what was committed survives a crash of the server, though not
        one of the machine; one iteration of SCRAM makes the many logins of tests cheap."""
        self._root = unpacked(LOCK, ARCH_OF_SYSTEM[f"{platform.machine()}-linux"])
        self._as_root = os.geteuid() == 0
        self._user = NOBODY if self._as_root else os.geteuid()
        self.folder = _new_folder(self._root, self._user)
        self.password = secrets.token_urlsafe(12)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._make_cluster()
        self._settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "dynamic_shared_memory_type": "mmap", "jit": "off", "fsync": "off", "max_connections": "200", **settings}  # fmt: skip

    def dsn(self, database: str = DATABASE, **parameters: str) -> str:
        """A URI for libpq. The role is a superuser."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}" + _query(
            parameters
        )

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns once it answers. Raises RuntimeError with its log when it does not."""
        if self.running:
            return
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        with (self.folder / "log").open("ab") as log:
            argv = self._chrooted(
                "postgres", "-D", f"{self._inside}/data", "-p", str(self.port), *options
            )
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "LC_ALL": "C"},
            )
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if not self.running or time.monotonic() > until:
                    raise RuntimeError(
                        f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}"
                    ) from None
            time.sleep(0.02)

    def stop(self, *, at_once: bool = False) -> None:
        """Ends it: connections are cut, and `at_once` as in a crash, so that the next start recovers from the log."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
            process.wait(timeout=_START_SECONDS)

    def remove(self) -> None:
        """Stops it and deletes its folder."""
        self.stop(at_once=True)
        shutil.rmtree(self.folder)

    def database(self, name: str) -> None:
        """Makes an empty database."""
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as db:
            db.execute(f'CREATE DATABASE "{name}"')

    @property
    def _inside(self) -> str:
        return f"/srv/{self.folder.name}"

    def _make_cluster(self) -> None:
        (self.folder / "password").write_text(self.password)
        os.chown(self.folder / "password", self._user, -1)
        argv = self._chrooted(
            "initdb", "-D", f"{self._inside}/data", f"--username={USER}", f"--pwfile={self._inside}/password",
            "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-sync", "-c", "scram_iterations=1",
        )  # fmt: skip
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")

    def _chrooted(self, program: str, *arguments: str) -> list[str]:
        into = ["unshare", "--user", "--map-current-user", f"--root={self._root}", "--wd=/"]
        if self._as_root:
            into = ["chroot", f"--userspec={self._user}:{self._user}", str(self._root)]
        return [*into, f"{BIN}/{program}", *arguments]


@contextlib.contextmanager
def running(**settings: str) -> Iterator[PostgresServer]:
    """A server with the empty database `test`, gone afterwards."""
    server = PostgresServer(**settings)
    try:
        server.start()
        server.database(DATABASE)
        yield server
    finally:
        server.remove()


def _new_folder(root: Path, user: int) -> Path:
    """A folder below the root, named after this process."""
    _may_log_in(root, user)
    (root / "srv").mkdir(exist_ok=True)
    for left in (root / "srv").iterdir():
        if not Path("/proc", left.name.partition("-")[0]).exists():
            _remove_left(left)
    folder = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=root / "srv"))
    os.chown(folder, user, -1)
    return folder


def _may_log_in(root: Path, user: int) -> None:
    """PostgreSQL asks for the name of the user that it runs as."""
    (root / "etc/passwd").write_text(f"postgres:x:{user}:{user}::/:/bin/sh\n")
    (root / "dev").mkdir(exist_ok=True)
    null = root / "dev/null"
    null.touch()
    null.chmod(0o666)


def _remove_left(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
        pid = int((folder / "data/postmaster.pid").read_text().split()[0])
        if f"/srv/{folder.name}/data".encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGQUIT)
    shutil.rmtree(folder, ignore_errors=True)


def _query(parameters: dict[str, str]) -> str:
    return f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
