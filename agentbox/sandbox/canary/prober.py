"""What a canary runs inside of a sandbox: tries each thing once and says what the kernel answered.

Started as source on a command line, so it imports nothing but what is built into the interpreter, and starts fast. Words:
secret (a file), there (a path to be made), port, pid, mine (a path to be made), word (to be written to it). Prints a JSON
object: name of the rule -> errno, 0 where the thing was done.
"""

import _socket
import os
import sys
from collections.abc import Callable


def main(arguments: list[str]) -> None:
    """Never raises for what is refused."""
    secret, new_file, port, pid, allowed_path, token = arguments
    attempts: dict[str, Callable[[], object]] = {
        "read": lambda: os.close(os.open(secret, os.O_RDONLY)),
        "write": lambda: _write(new_file, token),
        "attribute": lambda: os.chmod(secret, 0o640),  # noqa: PTH101 - pathlib costs more than all of this
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
