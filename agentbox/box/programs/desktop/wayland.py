"""Wayland: a compositor without a screen, and a VNC server that shows it."""

from pathlib import Path

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

USER = "agentbox"
_SOCKET = "wayland-0"
_OUTPUT = "HEADLESS-1"  # the name that wlroots gives to an output of its headless backend
_KEY_BITS = "rsa:3072"
_HEADLESS = {
    "WLR_BACKENDS": "headless",
    "WLR_HEADLESS_OUTPUTS": "1",
    "WLR_LIBINPUT_NO_DEVICES": "1",
    "WLR_RENDERER": "pixman",  # draws without a GPU
}


def server() -> None:
    """Executes the compositor."""
    paths = box_paths()
    runtime = _runtime(paths)
    for name in (_SOCKET, f"{_SOCKET}.lock"):
        (runtime / name).unlink(missing_ok=True)  # left by a compositor that was killed
    exec_program(["/usr/bin/labwc"], {"XDG_RUNTIME_DIR": str(runtime), **_HEADLESS})


def viewer(port: str, resolution: str, password_file: str) -> None:
    """Executes the VNC server once the compositor is up and has the requested size: user
    `agentbox`, the password, and no unencrypted traffic.
    """
    paths = box_paths()
    runtime = _runtime(paths)
    wait_for_socket(runtime / _SOCKET)
    env = {"XDG_RUNTIME_DIR": str(runtime), "WAYLAND_DISPLAY": _SOCKET}
    run_helper(["/usr/bin/wlr-randr", "--output", _OUTPUT, "--custom-mode", resolution], env=env)
    key, certificate = _certificate(paths)
    settings = {
        "address": "0.0.0.0",
        "port": port,
        "enable_auth": "true",
        "username": USER,
        "password": read_password(password_file),
        "private_key_file": key,
        "certificate_file": certificate,
        "rsa_private_key_file": key,
    }
    config_file = session_directory(paths) / "wayvnc"
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    replace(config_file, text.encode(), mode=0o600, durable=False)
    exec_program(["/usr/bin/wayvnc", "--config", str(config_file), "--output", _OUTPUT], env)


def _runtime(paths: Paths) -> Path:
    paths.user_runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    return paths.user_runtime


def _certificate(paths: Paths) -> tuple[Path, Path]:
    """A key and a certificate, created at the first start and stored, so that viewers recognize the
    box.
    """
    key, certificate = paths.slot("desktop") / "key.pem", paths.slot("desktop") / "certificate.pem"
    if not (key.exists() and certificate.exists()):
        key_file = session_directory(paths) / "new-key.pem"
        argv = ["/usr/bin/openssl", "req", "-x509", "-newkey", _KEY_BITS, "-noenc", "-days", "3650"]
        text = run_helper([*argv, "-subj", f"/CN={USER}", "-keyout", str(key_file)])
        # The RSA-AES types read only the older key format.
        plain = run_helper(["/usr/bin/openssl", "rsa", "-traditional", "-in", str(key_file)])
        key_file.unlink()
        replace(certificate, text, mode=0o600)
        replace(key, plain, mode=0o600)
    return key, certificate
