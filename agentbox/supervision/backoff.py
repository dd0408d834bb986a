"""`backoff(name)`: the first thing each of our programs calls. Standard library only.

supervisord's own retry limit does not hold for programs with startsecs 0 (they count as started at once), so a program
that dies at start would be restarted for ever at full speed.
"""

import json
import time

from agentbox.canonical import canonical_json
from agentbox.settings import Paths
from agentbox.supervision.boot_record import read_boot_record
from agentbox.supervision.files import replace

FREE_STARTS, FREE_WINDOW = 3, 10.0  # so many starts in so many seconds cost nothing
STOP_STARTS, STOP_WINDOW = 5, 60.0  # a program restarted more often than this is stopped
FIRST_WAIT, LONGEST_WAIT = 0.2, 5.0  # seconds


def wait_seconds(starts: list[float], present: float) -> float:
    """How long a program must wait that was started at those moments, the present start among them."""
    extra = len([moment for moment in starts if present - moment < FREE_WINDOW]) - FREE_STARTS
    return 0.0 if extra <= 0 else min(FIRST_WAIT * 2 ** (extra - 1), LONGEST_WAIT)


def must_stop(starts: list[float], present: float) -> bool:
    """True when it was restarted more than 5 times in 60 s (its first start is no restart)."""
    return len([moment for moment in starts if present - moment < STOP_WINDOW]) - 1 > STOP_STARTS


def backoff(paths: Paths, name: str) -> None:
    """Records this start of the program, waits if it starts too often, and has it stopped if it never stays up.

    Each wait is told by the event `ProgramRestarting`. The test hook that delays a program acts here too.
    """
    present = time.monotonic()
    starts = [moment for moment in _recorded(paths, name) if 0 <= present - moment < STOP_WINDOW] + [present]
    paths.starts_dir.mkdir(parents=True, exist_ok=True)
    replace(paths.starts_dir / name, canonical_json(starts), durable=False)
    record = read_boot_record(paths)
    seconds = wait_seconds(starts, present)
    stop = must_stop(starts, present)
    if record is not None and (seconds or stop):
        record.log(paths).emit("ProgramRestarting", program=name, starts=len(starts), wait_seconds=seconds)
    if stop:
        _stop(paths, name)
    delay = 0.0 if record is None else record.hooks.delay_program.get(name, 0.0)
    time.sleep(seconds + delay)


def _recorded(paths: Paths, name: str) -> list[float]:
    try:
        return [float(moment) for moment in json.loads((paths.starts_dir / name).read_bytes())]
    except (FileNotFoundError, ValueError, TypeError):
        return []


def _stop(paths: Paths, name: str) -> None:
    from agentbox.supervision.rpc import SupervisorClient  # slow to import, hardly ever needed

    SupervisorClient(paths).stop(name, wait=False)
