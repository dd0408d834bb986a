"""Asks for one path of a box again and again, from a process of its own, as a probe or a scraper does: what else a load does
is no part of how long an answer takes.

`python bench/ten_asked.py PORT PATH PAUSE TOKEN` says a line a request, until its stdin closes: when it was asked for
(time.perf_counter, one clock for all processes), and milliseconds, or the name of what went wrong.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import sys
import time

_TIMEOUT = 20.0


def asked(connection: http.client.HTTPConnection, path: str, head: dict[str, str]) -> str:
    """Milliseconds, or the name of an error; then the connection is closed."""
    sent = time.perf_counter()
    try:
        connection.request("GET", path, headers=head)
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        return type(error).__name__
    return (
        f"{(time.perf_counter() - sent) * 1000:.4f}"
        if answer.status == http.client.OK
        else str(answer.status)
    )


def main(port: str, path: str, pause: str, token: str) -> None:
    """Until nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=_TIMEOUT)
    head = {"Authorization": f"Bearer {token}"}
    with contextlib.suppress(BrokenPipeError):
        while not select.select([sys.stdin], [], [], float(pause))[0]:
            sent = time.perf_counter()
            sys.stdout.write(f"{sent} {asked(connection, path, head)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
