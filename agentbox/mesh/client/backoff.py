"""Wait times of a client in seconds before scaling, with jitter to spread the load of many
boxes."""

import random

MAX_BACKOFF = 60.0
MAX_RETRY_AFTER = 600.0
REFUSED_SECONDS = 600.0
FIRST_RETRIES = (1.0, 2.0, 4.0, 8.0)  # after a failed heartbeat; then at each period


def jittered(seconds: float) -> float:
    """Varies by up to 10 %."""
    return seconds * random.uniform(0.9, 1.1)


def retry_delay(failures: int, retry_after: float | None) -> float:
    """After that many consecutive failures, from 0; the host's Retry-After has priority."""
    if retry_after is not None:
        return min(retry_after, MAX_RETRY_AFTER)
    return random.uniform(0, min(MAX_BACKOFF, 2.0 ** min(failures, 10)))


def refused_delay() -> float:
    """Before a refused box asks again."""
    return jittered(REFUSED_SECONDS)


def rejoin_delay() -> float:
    """Before an evicted box rejoins."""
    return random.uniform(0, 1)


def heartbeat_delay(heartbeat_s: float, misses: int) -> float:
    """After that many consecutive missed heartbeats."""
    return jittered(FIRST_RETRIES[misses - 1] if 0 < misses <= len(FIRST_RETRIES) else heartbeat_s)
