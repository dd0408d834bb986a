"""Creates the virtual environment of a checkout from `requirements.host`.

Run by agentbox.sh with the host's Python; uses the standard library only. A lock serialises
concurrent runs; the stamp is written last, so an interrupted run starts again. The stamp is two
files that agentbox.sh compares: the path of the checkout (a moved or copied environment would
import the original sources) and the requirements.
"""

import compileall
import fcntl
import os
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import IO

_CHECKOUT_STAMP, _REQUIREMENTS_STAMP = ".checkout", ".required"
_PTH_FILE = "agentbox-checkout.pth"
# Relative to the environment and ASCII; realpath because a box has a symlink to the environment.
_PTH_CONTENT = (
    "import os, sys; sys.path.append(os.path.realpath(os.path.join(sitedir, '../../../..')))\n"
)
_EXIT_PREREQUISITE, _EXIT_INTERRUPTED = 3, 130  # exit codes (agentbox.core.errors.ExitCode)


def main(checkout: Path, terminal: str) -> int:
    """Returns 0, 3 (the reason was printed) or 130 (Ctrl-C; agentbox.sh prints the message).

    `terminal` is the caller's TERM.
    """
    target, log_path = checkout / ".venv", checkout / ".venv.log"
    try:
        if reason := _adopt_authorities():
            return _report_failure(*reason)
        with (checkout / ".venv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_stamped(target, checkout):
                return 0
            with log_path.open("w+", encoding="utf-8", errors="backslashreplace") as log:
                if not _create(
                    target, checkout, log, bar=sys.stderr.isatty() and terminal not in ("", "dumb")
                ):
                    log.seek(0)
                    return _report_failure(*_failure_reason(log.read(), log_path, target))
            write_stamp(target, checkout)
            log_path.unlink()
    except OSError as error:
        return _report_failure(
            f"{error.strerror}: {error.filename or target}",
            "Free disk space, or make the checkout writable.",
        )
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    return 0


def write_stamp(target: Path, checkout: Path) -> None:
    """Marks the environment as complete for this checkout and its requirements."""
    site = next((target / "lib").glob("python3.*/site-packages"))
    (site / _PTH_FILE).write_text(_PTH_CONTENT)
    (target / _REQUIREMENTS_STAMP).write_bytes((checkout / "requirements.host").read_bytes())
    (target / _CHECKOUT_STAMP).write_bytes(os.fsencode(checkout) + b"\n")


def _adopt_authorities() -> tuple[str, str] | None:
    """Makes pip trust what `AGENTBOX_CA_BUNDLE` names; returns why that cannot be used."""
    from agentbox.core.errors import AgentboxError
    from agentbox.host.network.adopt import adopt_authorities

    try:
        adopt_authorities()
    except AgentboxError as error:
        return error.message, error.hint
    return None


def _report_failure(reason: str, hint: str) -> int:
    message = (
        f"agentbox: cannot make the Python environment: {reason}\n  {hint} Then run the command "
        "again.\n"
    )
    sys.stderr.buffer.write(os.fsencode(message))
    return _EXIT_PREREQUISITE


def _failure_reason(output: str, log_path: Path, target: Path) -> tuple[str, str]:
    """Returns the cause of pip's failure and a hint."""
    from agentbox.host.packages.python.pip_failures import explain_failure

    cause, remedy = explain_failure(output, str(target / "bin/python"))
    return cause, f"See {log_path} for the full output. {remedy}"


def _is_stamped(target: Path, checkout: Path) -> bool:
    stamp_path, requirements = (
        target / _REQUIREMENTS_STAMP,
        (checkout / "requirements.host").read_bytes(),
    )
    is_current = stamp_path.exists() and stamp_path.read_bytes() == requirements
    return is_current and _stamped_checkout(target) == os.fsencode(checkout)


def _stamped_checkout(target: Path) -> bytes:
    """The checkout that the environment was created for; empty for a symlink to another one."""
    if target.is_symlink():
        return b""
    links = (target / "lib").glob(
        f"python3.*/site-packages/{_PTH_FILE}"
    )  # absolute path: before the stamp existed
    return (
        _read_bytes(target / _CHECKOUT_STAMP) or _read_bytes(next(links, target / _PTH_FILE))
    ).removesuffix(b"\n")


def _read_bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _create(target: Path, checkout: Path, log: IO[str], *, bar: bool) -> bool:
    if target.is_symlink():
        target.unlink()
    # A usable environment is updated in place: a process-engine box may be running from it.
    reusable = _stamped_checkout(target) == os.fsencode(checkout) and _is_usable(target)
    (target / _REQUIREMENTS_STAMP).unlink(missing_ok=True)
    try:
        venv.EnvBuilder(with_pip=not reusable, clear=not reusable, symlinks=True).create(target)
    except subprocess.CalledProcessError as error:
        log.write(f"{(error.output or b'').decode(errors='replace')}\n{error}\n")
        return False
    requirements = checkout / "requirements.host"
    total = sum(1 for line in requirements.read_text().splitlines() if "==" in line)
    pip = [
        str(target / "bin/python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-cache-dir",  # the environment is all that this leaves
        "--no-deps",
    ]
    command = [
        *pip,
        "--progress-bar",
        "off",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "-r",
        str(requirements),
    ]
    started = time.monotonic()
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            count = _copy_output(process.stdout, log, total, bar=bar)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        return False
    compileall.compile_dir(checkout / "agentbox", quiet=2, workers=0)  # pip compiled the packages
    sys.stderr.write(f"Python environment: {count} packages, {time.monotonic() - started:.1f} s\n")
    return True


def _is_usable(target: Path) -> bool:
    python = target / "bin/python"
    command = [
        str(python),
        "-c",
        f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})",
    ]
    return (
        python.exists()
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


def _copy_output(lines: IO[str], log: IO[str], total: int, *, bar: bool) -> int:
    """Copies pip's output to the log, with an optional bar. Returns the number of packages."""
    count = 0
    for line in lines:
        log.write(line)
        count += line.startswith(("Collecting ", "Requirement already satisfied"))
        if bar:
            filled = "#" * (30 * min(count, total) // max(total, 1))
            sys.stderr.write(
                f"\rPython environment [{filled:<30}] {min(count, total)}/{total} packages"
            )
    sys.stderr.write("\r\x1b[K" if bar else "")
    return count


if __name__ == "__main__":
    sys.path[0] = sys.argv[1]  # not this directory: its files have names of the standard library
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
