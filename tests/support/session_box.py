"""A box of real parts with session-host, and the command line of an operator who works with it."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentbox.core.paths import PREFIX_VARIABLE, environment
from agentbox.host.engines.state import BoxRecord, BoxState
from agentbox.plan.names import SESSION_HOST
from agentbox.sandbox.launcher import tree
from support.agent_host import end_with_parent
from support.api_box import TOKEN
from support.forked_program import run_command
from support.story_box import StoryBox

NAME = "sessions-of-a-test"
_START_SECONDS = 20.0


class SessionBox(StoryBox):
    """A context manager. `manifest` as of StoryBox; its agents may have `protocol = "acp"`."""

    def __init__(
        self, prefix: Path, url: str, manifest: str, secrets: Mapping[str, str], **limits: Any
    ) -> None:
        super().__init__(prefix, url, manifest, secrets, programs=(SESSION_HOST,), **limits)
        self.session_log = prefix / "session-host.log"
        self.session_host: subprocess.Popen[bytes] | None = None
        self.operator = prefix / "operator"
        self._write_operator()

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self.start_session_host()
        except BaseException:
            super().__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.kill_session_host()
        super().__exit__(kind, error, tb)

    def start_session_host(self) -> None:
        """Confined, as supervisord starts it; waits until it listens. Raises RuntimeError with its
        log.
        """
        inherited = {
            name: environment()[name] for name in ("PATH", "HOME") if name in environment()
        }
        python = (sys.executable, "-I", "-m")
        for directory in (self.paths.tmp, self.paths.starts_dir):
            directory.mkdir(parents=True, exist_ok=True)
        self.paths.session_host_socket.unlink(missing_ok=True)
        with self.session_log.open("ab") as out:
            self.session_host = subprocess.Popen(
                [
                    *python,
                    "agentbox.box.programs.confined",
                    SESSION_HOST,
                    *python,
                    "agentbox.sessions",
                ],
                env={**inherited, PREFIX_VARIABLE: str(self.paths.prefix)},
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self.paths.session_host_socket.exists():
            if self.session_host.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"it does not start:\n{self.session_log.read_text()}")
            time.sleep(0.005)

    def restart_session_host(self) -> None:
        """Kills it and starts it."""
        self.kill_session_host()
        self.start_session_host()

    def kill_session_host(self) -> None:
        """SIGKILL to all of its processes. Idempotent."""
        if self.session_host is not None:
            tree.signal_processes(tree.quick_descendants(self.session_host.pid), signal.SIGKILL)
            self.session_host.kill()
            self.session_host.wait()
            self.session_host = None

    def words(self, *arguments: str) -> list[str]:
        """A call of `agentbox` by the operator."""
        manifest = str(self.operator / "agentbox.toml")
        return [sys.executable, "-m", "agentbox", "--manifest", manifest, *arguments]

    def environment(self) -> dict[str, str]:
        """That of the operator's shell."""
        return {**environment(), "AGENTBOX_STATE_DIR": str(self.operator / "state")}

    def run(
        self, *arguments: str, given: str = "", seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """One call of `agentbox`, to its end."""
        return run_command(
            *self.words(*arguments)[3:], env=self.environment(), given=given, timeout=seconds
        )

    def _write_operator(self) -> None:
        self.operator.mkdir(parents=True)
        (self.operator / "agentbox.toml").write_text(
            f'[meta]\nschema_version = 1\nname = "{NAME}"\n'
        )
        state = BoxState(self.operator / "state" / NAME)
        state.make()
        state.save_record(
            BoxRecord(
                engine="docker",
                name=NAME,
                api_url=self.api.url,
                folder=str(state.compose_dir),
                project=str(self.paths.workspace),
            )
        )
        state.token_file.write_text(TOKEN)
