"""The program that a canary runs in its sandbox: tries each access once and reports the errno.

Passed as source on the command line, so it imports only modules that are built into the interpreter
and starts fast. Arguments: secret (a file), new_file (a path to create), port, pid, allowed_path (a
path to create), token (to write there). Prints a JSON object: name of the rule -> errno, 0 on
success.
"""

import _socket
import os
import sys
from collections.abc import Callable


def main(arguments: list[str]) -> None:
    """Never raises for a refused access."""
    secret, new_file, port, pid, allowed_path, token = arguments
    attempts: dict[str, Callable[[], object]] = {
        "read": lambda: os.close(os.open(secret, os.O_RDONLY)),
        "write": lambda: _write(new_file, token),
        # pathlib costs more than all of this.
        "attribute": lambda: os.chmod(secret, 0o640),  # noqa: PTH101
        "connect": lambda: _connect(int(port)),
        "syscall": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
        "signal": lambda: os.kill(int(pid), 0),
        "socket": lambda: _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM).close(),
        "allowed-write": lambda: _write(allowed_path, token),
    }
    print(
        "{" + ", ".join(f'"{name}": {_errno(attempt)}' for name, attempt in attempts.items()) + "}"
    )


def _errno(attempt: Callable[[], object]) -> int:
    try:
        attempt()
    except OSError as error:
        return error.errno or -1
    return 0


def _write(path: str, token: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(file, token.encode())
    os.close(file)


def _connect(port: int) -> None:
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        sock.connect(("127.0.0.1", port))
    finally:
        sock.close()


if __name__ == "__main__":
    main(sys.argv[1:])
