"""`backoff(name)`: the first call of each agentbox program. Standard library only.

supervisord restarts a program with startsecs 0 immediately and without limit, because it counts as
started. A program that does not stay up therefore waits before it starts to work; the wait grows
with each start and has no end, since the cause may pass.
"""

import json
import os
import signal
import time
from pathlib import Path

from agentbox.box.supervision.boot_record import read_boot_record
from agentbox.core.canonical import canonical_json
from agentbox.core.files.atomic import replace
from agentbox.core.paths import Paths, environment

FREE_STARTS = 3  # consecutive starts without a wait
HEALTHY_SECONDS = 10.0  # after this uptime the count starts again
FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0  # seconds
_MAX_STARTS = 100  # starts kept; a higher count changes nothing


def consecutive_starts(starts: list[float], now: float) -> list[float]:
    """The starts up to now without a healthy period between them; each is the time at which the
    wait of that start ended.
    """
    recent = [now]
    for moment in reversed(starts):
        if not recent[0] - moment < HEALTHY_SECONDS:
            break
        recent.insert(0, moment)
    return recent[-_MAX_STARTS:]


def wait_seconds(starts: int) -> float:
    """The wait in seconds after this many consecutive starts."""
    extra = min(starts - FREE_STARTS, 16)
    return 0.0 if extra <= 0 else min(FIRST_WAIT * 2 ** (extra - 1), LONGEST_WAIT)


def backoff(paths: Paths, name: str) -> None:
    """Records this start of the program, and waits if it does not stay up.

    Each wait emits the event `ProgramRestarting`. The test hook that delays a program acts here
    too. From now on the program gets SIGTERM when supervisord dies.
    """
    now = time.monotonic()
    starts = consecutive_starts(_read_starts(paths, name), now)
    seconds = wait_seconds(len(starts))
    starts[-1] += seconds
    paths.starts_dir.mkdir(parents=True, exist_ok=True)
    replace(paths.starts_dir / name, canonical_json(starts), durable=False)
    record = read_boot_record(paths)
    end_with_supervisord(signal.SIGTERM)
    if record is not None and seconds:
        record.log(paths).emit(
            "ProgramRestarting", program=name, starts=len(starts), wait_seconds=seconds
        )
    delay = 0.0 if record is None else record.hooks.delay_program.get(name, 0.0)
    time.sleep(seconds + delay)


def end_with_supervisord(number: int) -> None:
    """Sends this process a signal when its supervisord dies, immediately if it is dead already.
    Does nothing if another program started the process.
    """
    if "SUPERVISOR_ENABLED" not in environment():
        return
    from agentbox.core.linux.kernel import set_parent_death_signal  # ctypes: only programs need it

    set_parent_death_signal(number)
    if b"supervisord" not in Path(f"/proc/{os.getppid()}/cmdline").read_bytes():
        os.kill(os.getpid(), number)


def _read_starts(paths: Paths, name: str) -> list[float]:
    try:
        return [float(moment) for moment in json.loads((paths.starts_dir / name).read_bytes())]
    except (FileNotFoundError, ValueError, TypeError):
        return []
