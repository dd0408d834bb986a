"""The packages of the checkout's lock, in the store."""

import fcntl
import subprocess
import sys

from agentbox.core.paths import CHECKOUT, HostPaths
from agentbox.core.progress import NullProgress
from agentbox.host.packages.errors import NotServedError
from agentbox.host.packages.store.fetch import fetch_all
from agentbox.plan.lockfile.reader import parse_lock

LOCK = CHECKOUT / "agentbox.lock"


def bring() -> None:
    """For this machine's system. Versions that the mirrors serve no more are locked again first, in this checkout, as `up` does.

    Raises what `fetch_all` raises, CalledProcessError when nothing can be locked.
    """
    cache = HostPaths.for_this_user().cache
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "tests.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            fetch_all(parse_lock(LOCK), cache=cache, progress=NullProgress())
        except NotServedError as error:
            sys.stderr.write(f"{error.message}; locking again: commit the new agentbox.lock\n")
            subprocess.run([CHECKOUT / "agentbox.sh", "lock"], check=True)
            fetch_all(parse_lock(LOCK), cache=cache, progress=NullProgress())
