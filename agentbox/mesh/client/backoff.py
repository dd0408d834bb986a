"""How long a client waits, in seconds before scaling; with jitter, so that boxes do not come all at once."""

import random

MAX_BACKOFF = 60.0
MAX_RETRY_AFTER = 600.0
REFUSED_SECONDS = 600.0
FIRST_RETRIES = (1.0, 2.0, 4.0, 8.0)  # after a beat that failed; then at each period


def jittered(seconds: float) -> float:
    """Within a tenth of it."""
    return seconds * random.uniform(0.9, 1.1)


def retry_delay(failures: int, retry_after: float | None) -> float:
    """After that many failures in a row, from 0 up; what the host asks for wins."""
    if retry_after is not None:
        return min(retry_after, MAX_RETRY_AFTER)
    return random.uniform(0, min(MAX_BACKOFF, 2.0 ** min(failures, 10)))


def refused_delay() -> float:
    """Before a box that was refused asks again by itself."""
    return jittered(REFUSED_SECONDS)


def rejoin_delay() -> float:
    """Before a box that was evicted joins again."""
    return random.uniform(0, 1)


def heartbeat_delay(heartbeat_s: float, misses: int) -> float:
    """After that many beats in a row that failed."""
    return jittered(FIRST_RETRIES[misses - 1] if 0 < misses <= len(FIRST_RETRIES) else heartbeat_s)
