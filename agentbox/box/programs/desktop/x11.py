"""X11: one server that is display and VNC server, and a window manager."""

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
    """Executes the VNC server: with a password, encrypted if the viewer supports it; no TCP for X
    itself.

    VNC uses eight characters of a password (RFC 6143, 7.2.2). The server still blocks addresses
    with too many failed logins.
    """
    paths = box_paths()
    directory = session_directory(paths)
    (paths.tmp / f".X{_NUMBER}-lock").unlink(missing_ok=True)  # left by a server that was killed
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
    # `local` is the abstract socket, which other confined programs cannot reach; libxcb tries it
    # first and, if it is refused, does not try the one in the file system.
    exec_program(
        [*argv, "-nolisten", "tcp", "-nolisten", "local", "-AlwaysShared", "-desktop", "agentbox"]
    )


def session() -> None:
    """Executes the window manager once the display is up."""
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
    """An entry of an X authority file (libXau, AuFileName.c): family, then four counted strings,
    all big-endian.
    """
    strings = (b"", _NUMBER.encode(), _NAME, cookie)
    return struct.pack(">H", _WILD_FAMILY) + b"".join(
        struct.pack(">H", len(string)) + string for string in strings
    )
