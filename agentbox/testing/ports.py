"""Ports for servers of tests."""

import random
import socket

_RANGE = range(20_000, 29_000)
"""Below the ports that Linux gives to outgoing connections (ip_local_port_range, 32768 and up): one of those may be taken at
any moment by whoever connects to anything."""


def free_port() -> int:
    """A port of loopback that nobody holds now, and that no outgoing connection will take. Raises OSError for none."""
    for port in random.sample(_RANGE, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("a hundred ports of loopback are taken")
