"""The process engine: the same boot below a prefix on the plain host, for development and machines without an engine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentbox.engine.base import Running, Start
from agentbox.engine.daemon import start_ticks
from agentbox.engine.identity import BOX_UID, become_box_user, require_readable
from agentbox.engine.logfile import lines_of
from agentbox.engine.state import BoxRecord
from agentbox.errors import AgentboxError, ExitCode
from agentbox.settings import CHECKOUT, PREFIX_VARIABLE, Paths, environment
from agentbox.supervision.protections import PROCESS_ENGINE_LACKS

_ROOTS = Path("/var/lib/agentbox-process")
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE")
_POLL_SECONDS = 0.05


class Process:
    """A box as processes of this host, below `root`, as uid 1000 when root starts it, else as the caller."""

    name = "process"
    protections_absent: tuple[str, ...] = PROCESS_ENGINE_LACKS

    def root(self, start: Start) -> Path:
        """Where the box lives: its state folder, or a folder that uid 1000 can reach when root starts it."""
        return _ROOTS / start.plan.name if os.geteuid() == 0 else start.state.folder / "root"

    def start(self, start: Start) -> BoxRecord:
        """Lays the box's files below its root and starts the boot in a session of its own."""
        root = self.root(start)
        if os.geteuid() == 0:
            require_readable([CHECKOUT, Path(sys.prefix), Path(sys.executable).resolve()])
        self._refuse_second(root)
        paths = Paths(root)
        lay_out(paths, start)
        process = boot(paths, start)
        return BoxRecord(
            engine=self.name, name=start.plan.name, api_url=f"http://{_host(start)}:{start.plan.api.port}",
            plan_digest=start.plan.digest, strict=start.strict, root=str(root), project=str(start.project or ""),
            pid=process.pid, start_ticks=start_ticks(process.pid),
        )  # fmt: skip

    def inspect(self, record: BoxRecord) -> Running:
        alive = record.pid > 0 and start_ticks(record.pid) == record.start_ticks
        return Running("running" if alive else "exited" if Path(record.root).exists() else "absent")

    def stop(self, record: BoxRecord, seconds: int) -> None:
        if self.inspect(record).state != "running":
            return
        os.kill(record.pid, signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self.inspect(record).state == "running":
            if time.monotonic() > deadline:
                os.killpg(record.pid, signal.SIGKILL)
            _reap(record.pid)
            time.sleep(_POLL_SECONDS)

    def restart(self, record: BoxRecord, seconds: int) -> None:
        raise AgentboxError(
            "cannot restart a process-engine box in place",
            "Run ./agentbox.sh down, then ./agentbox.sh up --engine process.",
            exit_code=ExitCode.ENGINE,
        )

    def remove(self, record: BoxRecord, *, volumes: bool) -> None:
        root = Path(record.root)
        if volumes:
            shutil.rmtree(root, ignore_errors=False)
            return
        for part in ("run", "tmp", "opt", "etc"):
            shutil.rmtree(root / part, ignore_errors=True)

    def logs(self, record: BoxRecord, *, follow: bool, lines: int | None, since: str | None) -> Iterator[str]:
        return lines_of(_log(Path(record.root)), follow=follow, lines=lines)

    def execute(self, record: BoxRecord, argv: Sequence[str], *, terminal: bool) -> int:
        paths = Paths(Path(record.root))
        return subprocess.run(
            argv, cwd=paths.workspace, env=_environment(paths), preexec_fn=become_box_user, check=False
        ).returncode

    def read(self, record: BoxRecord, box_path: str) -> bytes:
        return Paths(Path(record.root)).at(box_path).read_bytes()

    def _refuse_second(self, root: Path) -> None:
        for entry in Path("/proc").glob("[0-9]*/environ"):
            try:
                marked = f"{PREFIX_VARIABLE}={root}".encode() in entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if marked:
                raise AgentboxError(
                    f"cannot start the box below {root}: process {entry.parent.name} of an earlier start still runs there",
                    "Run ./agentbox.sh down first.",
                    exit_code=ExitCode.BUSY,
                )


def lay_out(paths: Paths, start: Start) -> None:
    """Writes the files that the image would hold, and the folders that mounts would be; owned by the box's user."""
    from agentbox.render import config_layer, supervisord

    for folder in (paths.share, paths.run, paths.mounted_secrets, paths.state, paths.logs / "supervisor", paths.tmp):
        folder.mkdir(parents=True, exist_ok=True)
    if start.project is None:
        paths.workspace.mkdir(exist_ok=True)
    elif not paths.workspace.is_symlink():
        paths.workspace.symlink_to(start.project)
    lock = (CHECKOUT / "agentbox.lock").read_bytes()
    files = {
        paths.at(name): text for name, text in config_layer(start.plan, manifest=start.manifest, lock=lock).items()
    }
    files |= {paths.manifest: start.manifest, paths.supervisord_conf: supervisord(start.plan, paths).encode()}
    for target, content in files.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    if not paths.venv.is_symlink():
        paths.venv.symlink_to(sys.prefix)
    for name in start.plan.secrets:
        secret = paths.mounted_secrets / name
        secret.write_text(start.secrets.get(name, ""))
        secret.chmod(0o400)
    if os.geteuid() == 0:
        _give(paths.prefix)


def _give(root: Path) -> None:
    for folder, _names, files in os.walk(root):
        for path in (folder, *(os.path.join(folder, name) for name in files)):  # noqa: PTH118  (os.walk gives strings)
            os.lchown(path, BOX_UID, BOX_UID)


def boot(paths: Paths, start: Start) -> subprocess.Popen[bytes]:
    """Starts the boot over what lies below the prefix, in a session of its own, as the box's user."""
    log = _log(paths.prefix)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    if os.geteuid() == 0:
        os.fchown(descriptor, BOX_UID, BOX_UID)
    env = _environment(paths) | dict(start.plan.environment) | dict(start.hooks)
    env |= {"AGENTBOX_PLAN_DIGEST": start.plan.digest, "AGENTBOX_STRICT": "1" if start.strict else "0"}
    with os.fdopen(descriptor, "wb") as stream:
        return subprocess.Popen(
            [str(paths.python), "-I", "-m", "agentbox.boot"],
            cwd=paths.prefix, env=env, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
            start_new_session=True, preexec_fn=become_box_user,
        )  # fmt: skip


def _environment(paths: Paths) -> dict[str, str]:
    here = environment()
    kept = {name: here[name] for name in _INHERITED if name in here}
    return kept | {PREFIX_VARIABLE: str(paths.prefix), "HOME": str(paths.workspace), "TMPDIR": str(paths.tmp)}


def _log(root: Path) -> Path:
    return root / "boot.log"


def _host(start: Start) -> str:
    address = start.plan.api.publish_address
    return "127.0.0.1" if address in {"0.0.0.0", "::"} else address


def _reap(pid: int) -> None:
    """Collects the box when it is a child of this very call (`up` that was interrupted)."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
