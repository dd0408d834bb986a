"""Makes the virtual environment of a checkout from `requirements.host`. Run by agentbox.sh with the host's Python.

Standard library only, and no import of agentbox: nothing is installed yet. Two at once are told apart by a lock; an
interrupted one is begun anew, for the stamp is written last.
"""

import fcntl
import re
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import IO

# What pip and ensurepip say -> what it means to the operator.
_CAUSES = (
    (re.compile(r"No space left on device"), "the disk is full"),
    (re.compile(r"name resolution|Failed to establish a new connection|timed out"), "no network: pip reaches no index"),
)
_PREREQUISITE, _INTERRUPTED = 3, 130  # exit codes (agentbox.errors.ExitCode)


def main(checkout: Path, stamp: str) -> int:
    """Returns 0, 3 after the reason was printed, or 130 (Ctrl-C; agentbox.sh says so)."""
    target, log_path = checkout / ".venv", checkout / ".venv.log"
    try:
        with (checkout / ".venv.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _stamped(target) == stamp:
                return 0
            with log_path.open("w+") as log:
                if not _make(target, checkout, log):
                    log.seek(0)
                    return _failed(_why(log.read()), f"The whole output is {log_path}. Connect, or free some space.")
            (target / ".requirements.sha256").write_text(stamp)
            log_path.unlink()
    except OSError as error:
        return _failed(f"{error.strerror}: {error.filename or target}", "Make room, or the checkout writable.")
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _failed(why: str, hint: str) -> int:
    print(f"agentbox: cannot make the Python environment: {why}", file=sys.stderr)
    print(f"  {hint} Then run the command again.", file=sys.stderr)
    return _PREREQUISITE


def _why(said: str) -> str:
    """The cause in words, else the last line that tells of an error."""
    if known := next((words for found, words in _CAUSES if found.search(said)), ""):
        return known
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "error" in line.lower()), lines[-1] if lines else "pip was killed")


def _stamped(target: Path) -> str:
    stamp = target / ".requirements.sha256"
    return stamp.read_text() if stamp.exists() else ""


def _make(target: Path, checkout: Path, log: IO[str]) -> bool:
    # One that works is brought up to date in place: a box under the process engine may be running from it.
    whole = _works(target)
    try:
        venv.EnvBuilder(with_pip=not whole, clear=not whole, symlinks=True).create(target)
    except subprocess.CalledProcessError as error:
        log.write(f"{(error.output or b'').decode(errors='replace')}\n{error}\n")
        return False
    wanted = checkout / "requirements.host"
    total = sum(1 for line in wanted.read_text().splitlines() if "==" in line)
    pip = [str(target / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
    command = [*pip, "--progress-bar", "off", "--require-hashes", "--only-binary", ":all:", "-r", str(wanted)]
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            seen = _follow(process.stdout, log, total)
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        return False
    site = next((target / "lib").glob("python3.*/site-packages"))
    (site / "agentbox-checkout.pth").write_text(f"{checkout}\n")
    sys.stderr.write(f"Python environment: {seen} packages, {time.monotonic() - started:.1f} s\n")
    return True


def _works(target: Path) -> bool:
    python = target / "bin/python"
    asked = [str(python), "-c", f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"]
    return python.exists() and subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _follow(lines: IO[str], log: IO[str], total: int) -> int:
    """Copies pip's output to the log, with a bar on a terminal. Returns how many packages it named."""
    seen, terminal = 0, sys.stderr.isatty()
    for line in lines:
        log.write(line)
        seen += line.startswith(("Collecting ", "Requirement already satisfied"))
        if terminal:
            bar = "#" * (30 * min(seen, total) // max(total, 1))
            sys.stderr.write(f"\rPython environment [{bar:<30}] {min(seen, total)}/{total} packages")
    sys.stderr.write("\r\x1b[K" if terminal else "")
    return seen


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
