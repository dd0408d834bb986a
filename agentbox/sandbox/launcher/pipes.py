"""The pipes of one process, as its host opens them."""

import contextlib
import os


def open_pipes(stdin: str, cleanup: contextlib.ExitStack) -> tuple[list[int | None], list[int]]:
    """Local and remote ends, each for three streams; `cleanup` closes them. Raises OSError."""

    def pipe() -> tuple[int, int]:
        ends = os.pipe2(os.O_CLOEXEC)
        for end in ends:
            cleanup.callback(os.close, end)
        return ends

    stdin_ends: tuple[int, int | None]
    if stdin == "pipe":
        stdin_ends = pipe()
    else:
        stdin_ends = (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), None)
        cleanup.callback(os.close, stdin_ends[0])
    out, err = pipe(), pipe()
    return [stdin_ends[1], out[0], err[0]], [stdin_ends[0], out[1], err[1]]


def close_fds(fds: list[int] | list[int | None]) -> None:
    """Closes those that there are."""
    for fd in fds:
        if fd is not None:
            os.close(fd)
