"""The boot of a process-engine box, and other programs that the host starts in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from agentbox.core.errors import AgentboxError, ExitCode, describe_exit
from agentbox.core.paths import PREFIX_VARIABLE, Paths, environment
from agentbox.host.engines.base import StartSpec
from agentbox.host.engines.command import failure_text
from agentbox.host.engines.process.privilege_drop import BOX_UID, become_box_user
from agentbox.host.engines.state import BoxRecord
from agentbox.plan.names import HOME

_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE")


def boot(
    paths: Paths, environment: Mapping[str, str], *, offline: bool = False
) -> subprocess.Popen[bytes]:
    """Starts the boot below the prefix, in its own session, as the box's user; `offline`: in a
    network namespace with a loopback interface only. Raises AgentboxError (exit 6) if the kernel
    does not allow one.
    """
    from agentbox.box.supervision.log_rotation import rotated_path
    from agentbox.plan.supervisord_files import boot_log

    rotated_path(boot_log(paths)).unlink(missing_ok=True)
    descriptor = os.open(
        boot_log(paths), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600
    )
    if os.geteuid() == 0:
        os.fchown(descriptor, BOX_UID, BOX_UID)
    with os.fdopen(descriptor, "wb") as stream:
        return _popen(
            [str(paths.python), "-I", "-m", "agentbox.box.boot"],
            cwd=paths.prefix,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            preexec_fn=_alone() if offline else become_box_user,
        )


def boot_environment(paths: Paths, start: StartSpec) -> dict[str, str]:
    """Return the environment of the boot: the plan's data, and the operator's variables that the
    plan passes through.
    """
    return boot_settings(paths, start.plan.passed, start.settings)


def boot_settings(
    paths: Paths, passed: Collection[str], settings: Mapping[str, str]
) -> dict[str, str]:
    """The same from its parts: the names of variables that are passed through, and the rest."""
    passed_through = {name: value for name, value in environment().items() if name in passed}
    return {**passed_through, **box_environment(paths), **settings}


def box_environment(paths: Paths) -> dict[str, str]:
    """What each program of a box that the host starts gets."""
    current = environment()
    inherited = {name: current[name] for name in _INHERITED if name in current}
    return inherited | {
        PREFIX_VARIABLE: str(paths.prefix),
        "HOME": str(paths.resolve(HOME)),
        "TMPDIR": str(paths.tmp),
    }


def run_inside(record: BoxRecord, module: str, stdin: str, seconds: float) -> str:
    """Runs a module in the network of the box. Raises AgentboxError (exit 6)."""
    from agentbox.core.network_namespace import join

    paths, doing = Paths(Path(record.root)), f"ask the box {record.name}"

    def enter() -> None:
        join(record.pid)
        become_box_user()

    try:
        done = subprocess.run(
            [str(paths.python), "-I", "-m", module],
            cwd=paths.prefix,
            env=box_environment(paths),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            preexec_fn=enter,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AgentboxError(
            f"cannot {doing}: no answer in {seconds:.0f} s", exit_code=ExitCode.ENGINE
        ) from error
    except subprocess.SubprocessError as error:  # `enter` failed: its processes are gone
        raise AgentboxError(
            f"cannot {doing}: it does not run", exit_code=ExitCode.ENGINE
        ) from error
    if done.returncode != 0:
        text = done.stderr.strip() or describe_exit(done.returncode)
        raise AgentboxError(f"cannot {doing}: {failure_text(text)}", exit_code=ExitCode.ENGINE)
    return done.stdout


def _alone() -> Callable[[], None]:
    """For the child: its modules are imported before the fork."""
    from agentbox.core.network_namespace import enter_new

    def enter() -> None:
        enter_new()
        become_box_user()

    return enter


def _popen(argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(argv, **options)
    except subprocess.SubprocessError as error:
        raise AgentboxError(
            "cannot start a box without a network: the kernel does not allow this user a network "
            "namespace",
            "Run the command as root, or use --engine docker.",
            exit_code=ExitCode.ENGINE,
        ) from error
