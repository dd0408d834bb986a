"""A real Community Solid Server on a loopback port, with a data folder that goes with it.

Its resources are files, since they must survive a kill; it asks nobody who they are, which is what auth "none" is for.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpx
from npm_tools import NODE, NPM
from support.ports import free_port

HERE = Path(__file__).parent / "solid"
MODULES = HERE / "node_modules"
_COMPILED = MODULES / "@solid/community-server/compiled.js"
"""Its parts are modules beside this one."""
_START_SECONDS = 90


@cache
def install() -> None:
    """Installs and compiles it once for each state of its sources; runs of several suites wait for
    each other."""
    sources = ("package-lock.json", "config.json", "compile.js")
    stamp, lock = MODULES / ".lock", "".join((HERE / name).read_text() for name in sources)
    with (HERE / "package-lock.json").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == lock:
            return
        for argv in (
            [*NPM, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            [NODE, "compile.js", _COMPILED],
        ):
            done = subprocess.run(argv, cwd=HERE, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        stamp.write_text(lock)


class SolidServer:
    """One server, which believes that its address is `url`: a relay of the test passes on to `port`, which may be another after
    each `start`. `start` and `kill` as often as wanted; `remove` at the end."""

    def __init__(self, *, relayed: bool = True) -> None:
        """Without a relay its port stays, and `url` is its own address."""
        install()
        self._relayed = relayed
        self.folder = Path(tempfile.mkdtemp(prefix="agentbox-solid-"))
        self.port = free_port()
        self.relay_port = free_port() if relayed else self.port
        self._process: subprocess.Popen[bytes] | None = None
        self._next: tuple[int, subprocess.Popen[bytes]] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.relay_port}"

    @property
    def files(self) -> Path:
        """Its resources."""
        return self.folder / "root"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns once it answers. Raises RuntimeError with its log when it does not."""
        if self.running:
            return
        if self._next is None:
            self.prepare()
        assert self._next is not None
        (self.port, self._process), self._next = self._next, None

    def prepare(self) -> None:
        """Starts one on the same files beside, which the next `start` takes: a start lasts seconds."""
        port = free_port() if self._relayed else self.port
        process = self._begun(port)
        self._next = port, process
        until = time.monotonic() + _START_SECONDS
        with httpx.Client(trust_env=False, timeout=5) as client:
            while not self._answers(client, port):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(
                        f"the Solid server did not start: {(self.folder / 'log').read_text()[-2000:]}"
                    )
                time.sleep(0.05)

    def _begun(self, port: int) -> subprocess.Popen[bytes]:
        self.files.mkdir(exist_ok=True)
        argv = [NODE, HERE / "start.js", _COMPILED, self.files, str(port), f"{self.url}/"]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                argv, cwd=HERE, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _answers(self, client: httpx.Client, port: int) -> bool:
        """Whether it serves its root container."""
        try:
            return client.head(
                f"http://127.0.0.1:{port}/", headers={"Host": f"127.0.0.1:{self.relay_port}"}
            ).is_success
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """SIGKILL, as a crash would end it."""
        process, self._process = self._process, None
        if process is not None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()

    def remove(self) -> None:
        """Ends it, and what was prepared, and deletes its folder."""
        self.kill()
        if self._next is not None:
            (self.port, self._process), self._next = self._next, None
            self.kill()
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def running() -> Iterator[SolidServer]:
    """A server, gone afterwards."""
    server = SolidServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()
