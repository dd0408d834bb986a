"""Makes the virtual environment of a checkout from `requirements.host`. Run by agentbox.sh with the host's Python.

Standard library only, and no import of agentbox: nothing is installed yet. Two at once are told apart by a lock; an
interrupted one is begun anew, for the stamp is written last.
"""

import fcntl
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import IO


def main(checkout: Path, stamp: str) -> int:
    """Returns 0, or 3 after the reason was printed."""
    target = checkout / ".venv"
    with (checkout / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _stamped(target) == stamp:
            return 0
        log_path = checkout / ".venv.log"
        with log_path.open("w+") as log:
            if not _make(target, checkout, log):
                log.seek(0)
                sys.stderr.write("".join(log.readlines()[-12:]))
                print(f"cannot make the Python environment: pip failed (whole output: {log_path})", file=sys.stderr)
                print(
                    "  Connect to the package index, or free some disk space, and run the command again.",
                    file=sys.stderr,
                )
                return 3
        (target / ".requirements.sha256").write_text(stamp)
        log_path.unlink()
    return 0


def _stamped(target: Path) -> str:
    stamp = target / ".requirements.sha256"
    return stamp.read_text() if stamp.exists() else ""


def _make(target: Path, checkout: Path, log: IO[str]) -> bool:
    # One that works is brought up to date in place: a box under the process engine may be running from it.
    whole = _works(target)
    try:
        venv.EnvBuilder(with_pip=not whole, clear=not whole, symlinks=True).create(target)
    except (OSError, subprocess.CalledProcessError) as error:
        log.write(f"{error}\n")
        return False
    wanted = checkout / "requirements.host"
    total = sum(1 for line in wanted.read_text().splitlines() if "==" in line)
    pip = [str(target / "bin/python"), "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
    command = [*pip, "--progress-bar", "off", "--require-hashes", "--only-binary", ":all:", "-r", str(wanted)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    _follow(process.stdout, log, total)
    if process.wait() != 0:
        return False
    site = next((target / "lib").glob("python3.*/site-packages"))
    (site / "agentbox-checkout.pth").write_text(f"{checkout}\n")
    return True


def _works(target: Path) -> bool:
    python = target / "bin/python"
    asked = [str(python), "-c", f"import pip, sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"]
    return python.exists() and subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _follow(lines: IO[str], log: IO[str], total: int) -> None:
    seen, started, terminal = 0, time.monotonic(), sys.stderr.isatty()
    for line in lines:
        log.write(line)
        seen += line.startswith(("Collecting ", "Requirement already satisfied"))
        if terminal:
            bar = "#" * (30 * min(seen, total) // max(total, 1))
            sys.stderr.write(f"\rPython environment [{bar:<30}] {min(seen, total)}/{total} packages")
    end = "\r" if terminal else ""
    sys.stderr.write(f"{end}Python environment: {seen} packages, {time.monotonic() - started:.1f} s{' ' * 30}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
