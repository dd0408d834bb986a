"""X11: one server that is display and VNC server at once, and a window manager on it."""

import secrets
import struct
from pathlib import Path
from typing import Final

from agentbox.box.programs.desktop.common import (
    box_paths,
    exec_program,
    read_password,
    run_helper,
    session_directory,
    wait_for_socket,
)
from agentbox.core.files.atomic import replace
from agentbox.core.paths import Paths

_NUMBER = "1"
DISPLAY = f":{_NUMBER}"
_COOKIE_BYTES = 16
_WILD_FAMILY = 0xFFFF  # Xauth.h: any address


def server(port: str, resolution: str, password_file: str) -> None:
    """Becomes the VNC server: a password, encrypted where the viewer can; no TCP for X itself.

    VNC reads eight characters of a password (RFC 6143, 7.2.2). The server's own list of addresses that failed too
    often stays on.
    """
    paths = box_paths()
    directory = session_directory(paths)
    (paths.tmp / f".X{_NUMBER}-lock").unlink(missing_ok=True)  # of a server that was killed
    obfuscated = run_helper(["/usr/bin/tigervncpasswd", "-f"], read_password(password_file) + "\n")
    replace(directory / "vnc", obfuscated, mode=0o600, durable=False)
    replace(
        _cookie(paths),
        _xauthority_entry(secrets.token_bytes(_COOKIE_BYTES)),
        mode=0o600,
        durable=False,
    )
    argv = [
        "/usr/bin/Xtigervnc",
        DISPLAY,
        "-rfbport",
        port,
        "-geometry",
        resolution,
        "-depth",
        "24",
    ]
    argv += [
        "-SecurityTypes",
        "TLSVnc,VncAuth",
        "-PasswordFile",
        str(directory / "vnc"),
        "-auth",
        str(_cookie(paths)),
    ]
    # `local` is the abstract socket, which is out of reach of other confined programs; libxcb tries it first, and does not
    # go on to the one of the file system where it is refused.
    exec_program(
        [*argv, "-nolisten", "tcp", "-nolisten", "local", "-AlwaysShared", "-desktop", "agentbox"]
    )


def session() -> None:
    """Becomes the window manager once the display is there."""
    paths = box_paths()
    wait_for_socket(paths.tmp / ".X11-unix" / f"X{_NUMBER}")
    exec_program(
        ["/usr/bin/openbox", "--sm-disable"],
        {"DISPLAY": DISPLAY, "XAUTHORITY": str(_cookie(paths))},
    )


def _cookie(paths: Paths) -> Path:
    return paths.desktop / "xauthority"


_NAME: Final = b"MIT-MAGIC-COOKIE-1"


def _xauthority_entry(cookie: bytes) -> bytes:
    """An entry of an X authority file (libXau, AuFileName.c): family, then four counted strings, all big-endian."""
    strings = (b"", _NUMBER.encode(), _NAME, cookie)
    return struct.pack(">H", _WILD_FAMILY) + b"".join(
        struct.pack(">H", len(string)) + string for string in strings
    )
