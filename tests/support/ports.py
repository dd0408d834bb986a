"""Free ports for test servers."""

import random
import socket

_RANGE = range(20_000, 29_000)
"""Below the ports of outgoing connections (ip_local_port_range, 32768 and up), which may be taken
at any moment.
"""


def free_port() -> int:
    """Return a free port of loopback that no outgoing connection will take. Raises OSError if there
    is none.
    """
    for port in random.sample(_RANGE, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("a hundred loopback ports are in use")
